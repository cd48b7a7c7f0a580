#include "comm/backend/process_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace muster {

identity identity_in_set(identity const& who, std::span<int const> ranks, std::size_t place, std::span<std::string const> hosts) {
    auto const host_at = [&](std::size_t i) -> std::string const& { return hosts[static_cast<std::size_t>(ranks[i])]; };
    identity member = who;
    member.rank = static_cast<int>(place);
    member.world_size = static_cast<int>(ranks.size());
    member.host = host_at(place);
    member.local_rank = 0;
    member.local_size = 0;
    std::vector<std::string> nodes;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (std::find(nodes.begin(), nodes.end(), host_at(i)) == nodes.end()) nodes.push_back(host_at(i));
        if (host_at(i) != member.host) continue;
        ++member.local_size;
        if (i < place) ++member.local_rank;
    }
    member.node_count = static_cast<int>(nodes.size());
    member.node_rank = static_cast<int>(std::find(nodes.begin(), nodes.end(), member.host) - nodes.begin());
    return member;
}

identity identity_of_member(identity const& who, std::span<int const> ranks, std::size_t place, std::string_view name) {
    identity member = who;
    member.nspace = fmt::format("{}/{:016x}/{}", who.nspace, static_cast<std::uint64_t>(fingerprint_of(ranks)), name);
    member.rank = static_cast<int>(place);
    member.world_size = static_cast<int>(ranks.size());
    bool const together = who.node_count == 1;
    member.local_rank = together ? member.rank : 0;
    member.local_size = together ? member.world_size : 1;
    member.node_rank = together ? 0 : member.rank;
    member.node_count = together ? 1 : member.world_size;
    return member;
}

std::int64_t fingerprint_of(std::span<int const> ranks) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u ^ ranks.size();
    for (int const rank : ranks) {
        hash = (hash ^ static_cast<std::uint64_t>(rank)) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return static_cast<std::int64_t>(hash);
}

std::string numbered_world(std::string const& name) {
    static std::mutex guard;
    static std::map<std::string, std::uint64_t> made;
    std::scoped_lock const lock(guard);
    return fmt::format("{}#{}", name, made[name]++);
}

}  // namespace muster
