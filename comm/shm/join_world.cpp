#include "comm/shm/join_world.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/memory/shared_buffers.hpp"
#include "comm/shm/rendezvous/shm_rendezvous.hpp"

namespace muster::shm {

namespace {

std::uint64_t hash_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return hash;
}

/// The name of a rendezvous: equal on its ranks, different for all others of this machine.
std::string key_of(std::string const& name) {
    return fmt::format("muster-shm-{}-{:016x}", ::geteuid(), hash_of(name));
}

template <typename Bits>
bool share_a_bit(Bits const& a, Bits const& b) noexcept {
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((a[i] & b[i]) != 0) return true;
    return false;
}

/// Whether this rank may read every other one's memory, and why not.
std::string probe(world const& all) {
    for (int rank = 0; rank < all.size; ++rank) {
        std::uint64_t seen = 0;
        int const code =
            read_memory(all.processes[static_cast<std::size_t>(rank)].pid, &seen, all.of(rank).here().token_address, sizeof seen);
        if (code != 0) return why_no_memory_access(code);
        if (seen != token) return fmt::format("the memory of rank {} is not where it says: another process namespace?", rank);
    }
    return {};
}

/// A buffer of this process to try mapping on; none where there can be no more files.
shared_place token_place() {
    try {
        static comm_buffer const probed = allocate_shared(sizeof token);
        return place_of(probed.data(), sizeof token);
    } catch (error const& problem) {
        spdlog::debug("shm: {}", problem.what());
        return {};
    }
}

/// Whether this rank may map what every other one shares.
bool probe_mapping(world& all) {
    for (int rank = 0; rank < all.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        shared_place const& place = all.of(rank).here().token_place;
        int code = 0;
        if (place.buffer == 0 || all.mapped[at].find(all.processes[at].pid, place, sizeof token, code) == nullptr) return false;
    }
    return true;
}

}  // namespace

world join_world(std::string const& name, identity const& who, comm_options const& options) {
    permit_memory_access();
    geometry sizes;
    sizes.ranks = static_cast<std::size_t>(who.world_size);
    shm_rendezvous ranks({key_of(name), describe_world(who, options), who.host, options.deadline, sizes.total_bytes()});
    world made = make_world(std::make_shared<shared_memory>(ranks.memory_file(), sizes.total_bytes()), sizes, who.rank);
    divide(made);
    static std::uint64_t const probed = token;
    made.own().construct();
    station& here = made.own().here();
    here.who = this_process();
    here.token_address = reinterpret_cast<std::uintptr_t>(&probed);
    here.token_place = token_place();
    ranks.all_say_yes(true);
    for (int rank = 0; rank < made.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        made.processes[at] = made.of(rank).here().who;
        made.hosts[at] = ranks.records()[at].host;
    }
    auto const& mine = ranks.records()[static_cast<std::size_t>(who.rank)].processors;
    for (auto const& record : ranks.records())
        if (record.rank != who.rank && share_a_bit(record.processors, mine)) made.beside.push_back(record.rank);
    made.crowded = is_crowded(ranks.records(), made.hosts[static_cast<std::size_t>(who.rank)]);
    std::string const refusal = probe(made);
    made.direct = ranks.all_say_yes(refusal.empty());
    made.mappable = ranks.all_say_yes(probe_mapping(made));
    spdlog::debug("shm: {} ranks{}, shared buffers {}, other large reductions and broadcasts {}{}", made.size,
                  made.crowded ? " on fewer processors" : "", made.mappable ? "in place" : "as others",
                  made.direct ? "from memory to memory" : "through shared memory: ",
                  made.direct       ? std::string{}
                  : refusal.empty() ? std::string("another rank was refused")
                                    : refusal);
    return made;
}

}  // namespace muster::shm
