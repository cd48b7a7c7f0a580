#include "comm/tcp/meet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/tcp/endpoint.hpp"
#include "comm/tcp/listener.hpp"
#include "pmix/client/client.hpp"

namespace muster::tcp {

namespace {

/// Of one node nobody outside has to reach.
std::string interface_of(identity const& who, comm_options const& options) {
    bool const together = who.node_count == 1 && options.network_interface.empty() && options.addresses.empty();
    return together ? "lo" : options.network_interface;
}

/// Each rank's text, behind its record: ranks of another job, or with other options, are seen before they would wait for each other.
std::vector<std::string> texts_by_pmix(identity const& who, comm_options const& options, std::string const& own) {
    static std::atomic<unsigned> worlds{0};
    world_record const mine = describe_world(who, options);
    std::vector<std::byte> told(sizeof mine + own.size());
    std::memcpy(told.data(), &mine, sizeof mine);
    std::memcpy(told.data() + sizeof mine, own.data(), own.size());
    std::vector<world_record> records;
    std::vector<std::string> texts;
    for (auto const& each :
         gather_by_pmix(who, fmt::format("muster.tcp.{}", worlds++), told, options.deadline, pmix_client_stays::for_this)) {
        if (each.size() < sizeof mine)
            throw error(errc::peer_failed, "a rank told no address; use one build of muster on all ranks");
        std::memcpy(&records.emplace_back(), each.data(), sizeof mine);
        texts.emplace_back(reinterpret_cast<char const*>(each.data()) + sizeof mine, each.size() - sizeof mine);
    }
    check_world(records, who);
    return texts;
}

}  // namespace

std::optional<std::string> why_not_meet(identity const& who, comm_options const& options) {
    if (!options.addresses.empty()) return std::nullopt;
    if (!options.members.empty()) return "it needs all ranks of the job step, or their addresses";
    if (who.from == identity::source::singleton) return "no launcher has started this program, and no addresses are given";
    if (!pmix::client_is_available()) return "there is no PMIx library by which the ranks could tell their addresses";
    return std::nullopt;
}

membership meet(identity const& who, comm_options const& options) {
    auto const interface = interface_of(who, options);
    auto const own = address_of_this_process(who.host, interface);
    auto const texts = options.addresses.empty() ? texts_by_pmix(who, options, own) : options.addresses;
    if (texts.size() != static_cast<std::size_t>(who.world_size))
        throw error(errc::usage,
                    fmt::format("rank {} on {}: {} addresses are given for {} ranks; give one of each, in their order", who.rank,
                                who.host, texts.size(), who.world_size));
    membership members;
    members.name = numbered_world("tcp/" + who.nspace);
    members.rank = who.rank;
    members.interface = interface;
    members.direct_ranks = options.direct_ranks;
    for (auto const& text : texts) {
        if (text.empty())
            throw comm_error(errc::peer_failed,
                             fmt::format("rank {} has ended, and had not said where it listens", members.ranks.size()),
                             {static_cast<int>(members.ranks.size())});
        members.ranks.push_back(parse_endpoint(text, "the address of a rank"));
        members.hosts.push_back(members.ranks.back().host);
    }
    return members;
}

}  // namespace muster::tcp
