#include "launch/run/remote/remote_ranks.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <set>

#include "base/version.hpp"
#include "launch/system/network.hpp"

namespace muster {

remote_ranks::remote_ranks(std::vector<remote_rank> ranks, evidence& known)
    : known_(known), first_late_(static_cast<int>(ranks.size())) {
    for (auto& rank : ranks) take_in(std::move(rank));
    known.hosts = planned_hosts_;
}

void remote_ranks::take_in(remote_rank rank) {
    auto const& who = rank.job.who;
    auto& known = known_.ranks.emplace_back(rank_evidence{.rank = who.rank, .spare = rank.spare, .node = rank.node});
    if (rank.spare >= 0) {
        known.plays = rank_evidence::part::coming;
        known_.members.push_back(-1);
    }
    auto const node = static_cast<std::size_t>(rank.node);
    if (planned_hosts_.size() <= node) planned_hosts_.resize(node + 1);
    planned_hosts_[node] = who.host;
    auto const number = static_cast<std::size_t>(who.node_rank);
    if (hosts_.size() <= number) hosts_.resize(number + 1);
    hosts_[number].ranks.push_back(who.rank);
    ranks_.push_back(std::move(rank));
}

remote_rank& remote_ranks::add(remote_rank rank) {
    auto const known = std::ranges::find(planned_hosts_, rank.job.who.host);
    rank.node = static_cast<int>(known - planned_hosts_.begin());
    if (known == planned_hosts_.end()) known_.hosts.push_back(rank.job.who.host);
    take_in(std::move(rank));
    return ranks_.back();
}

bool remote_ranks::is_late_agent(int number) const noexcept {
    return number >= 0 && number < static_cast<int>(hosts_.size()) &&
           is_late(hosts_[static_cast<std::size_t>(number)].ranks.front());
}

bool remote_ranks::any_first_here() const {
    return known_.count([this](auto const& one) { return one.here() && !is_late(one.rank); }) > 0;
}

wire::job remote_ranks::job_of(remote_rank const& rank) const {
    auto job = rank.job;
    if (!rank.common) return job;
    job.variables = rank.common->variables;
    job.command = rank.common->command;
    job.exports = rank.common->exports;
    job.kept_parts = rank.common->kept_parts;
    return job;
}

bool remote_ranks::is_on(int rank, int number) const noexcept {
    return rank >= 0 && rank < static_cast<int>(ranks_.size()) &&
           ranks_[static_cast<std::size_t>(rank)].job.who.node_rank == number;
}

bool remote_ranks::awaits_agent_of(int rank) const noexcept {
    bool const any = std::ranges::any_of(hosts_, [](auto const& host) { return host.link != nullptr; });
    return any && hosts_[static_cast<std::size_t>(ranks_[static_cast<std::size_t>(rank)].job.who.node_rank)].link == nullptr;
}

/// If some hosts' agents have come, the other hosts are the missing ones: no rank is started before all agents have come.
std::string remote_ranks::list_missing() const {
    if (auto const hosts = known_.list([this](auto const& rank) { return awaits_agent_of(rank.rank); }); !hosts.empty())
        return hosts;
    auto const absent = known_.list(rank_evidence::state::absent);
    auto const placing = known_.list(rank_evidence::state::placing);
    return (absent.empty() ? "none" : absent) + (placing.empty() ? "" : "; not yet placed: " + placing);
}

std::string remote_ranks::objection_to_agent(wire::hello const& hello) const {
    if (hello.version != version())
        return fmt::format("{} has muster {}, and this is muster {}; install the same version on every node", hello.host,
                           hello.version, version());
    if (hello.agent < 0 || hello.agent >= static_cast<int>(hosts_.size()))
        return fmt::format("an agent on {} says that it is number {} of {}; see the command with --dry-run", hello.host,
                           hello.agent, hosts_.size());
    if (hosts_[static_cast<std::size_t>(hello.agent)].link)
        return fmt::format("two agents came for host {}, the second on {}; see the command with --dry-run", hello.agent,
                           hello.host);
    return {};
}

std::string remote_ranks::objection_to(wire::hello const& hello, std::string_view engine) const {
    int const size = static_cast<int>(ranks_.size());
    if (hello.version != version())
        return fmt::format("{} has muster {}, and this is muster {}; install the same version on every node", hello.host,
                           hello.version, version());
    if (!hello.fault.empty()) return fmt::format("a rank on {} does not know its number: {}", hello.host, hello.fault);
    bool const late = is_late(hello.rank);
    if (hello.rank < 0 || hello.rank >= size || (hello.world_size != size && !late))
        return fmt::format("{} started rank {} of {} on {}, instead of {} ranks; see its command with --dry-run", engine,
                           hello.rank, hello.world_size, hello.host, size);
    auto const& rank = ranks_[static_cast<std::size_t>(hello.rank)];
    if (known_[hello.rank].now != rank_evidence::state::absent)
        return fmt::format("{} started rank {} twice, on {} and {}; see its command with --dry-run", engine, hello.rank,
                           rank.job.who.host, hello.host);
    if (late) return {};  // another name may have stood for its host before
    auto const host = host_of_node_.find(rank.node);
    auto const node = node_of_host_.find(hello.host);
    bool const shares_host = node != node_of_host_.end() && node->second != rank.node;
    if (shares_host && engine == "remote") return explain_host_of_two_nodes(node->second, rank.node, hello.host);
    if (shares_host || (host != host_of_node_.end() && host->second != hello.host))
        return fmt::format(
            "{} put rank {} on {}, where the plan has ranks of another node; compare muster plan with the command that --dry-run "
            "prints",
            engine, hello.rank, hello.host);
    return {};
}

/// Each host is called by its name in the plan, so two nodes on one host are two of its names: an alias, or an address.
std::string remote_ranks::explain_host_of_two_nodes(int node, int other, std::string const& host) const {
    auto const of_both = [&](remote_rank const& rank) { return rank.node == node || rank.node == other; };
    auto const& name = planned_hosts_[static_cast<std::size_t>(node)];
    return fmt::format("{} and {} are two names of one host, {}; write {}:{} instead of both", name,
                       planned_hosts_[static_cast<std::size_t>(other)], host, name, std::ranges::count_if(ranks_, of_both));
}

remote_rank& remote_ranks::admit(wire::hello const& hello) {
    auto& rank = (*this)[hello.rank];
    known_[hello.rank].now = rank_evidence::state::placing;
    if (!is_late(hello.rank)) known_.hosts[static_cast<std::size_t>(rank.node)] = hello.host;
    rank.job.who.host = hello.host;
    rank.step = hello.step;
    host_of_node_.emplace(rank.node, hello.host);
    node_of_host_.emplace(hello.host, rank.node);
    return rank;
}

std::optional<std::pair<int, int>> remote_ranks::find_shared_gpu() const {
    std::map<std::pair<int, std::string>, int> owners;
    for (auto const& rank : ranks_) {
        if (rank.place.gpu_index < 0) continue;
        auto const id = rank.place.gpu_uuid.empty() ? std::to_string(rank.place.gpu_index) : rank.place.gpu_uuid;
        auto const [owner, first] = owners.try_emplace({rank.node, id}, rank.job.who.rank);
        if (!first) return std::pair(rank.job.who.rank, owner->second);
    }
    return std::nullopt;
}

std::string remote_ranks::note_on_places() const {
    auto const noted = [](remote_rank const& rank) { return !rank.place.note.empty(); };
    auto const first = std::ranges::find_if(ranks_, noted);
    if (first == ranks_.end()) return {};
    auto const others = std::count_if(first, ranks_.end(), noted) - 1;
    return first->place.note + (others > 0 ? fmt::format(" (and so {} more host{})", others, others > 1 ? "s" : "") : "");
}

std::vector<std::string> remote_ranks::unknown_hosts() const {
    constexpr std::size_t most_names = 3;  // each look-up may take some seconds
    std::set<std::string> hosts;
    for (auto const& rank : known_.ranks)
        if (rank.now == rank_evidence::state::absent && hosts.size() < most_names) hosts.insert(known_.host_of(rank));
    std::erase_if(hosts, has_address);
    return {hosts.begin(), hosts.end()};
}

wire::go remote_ranks::make_go() const {
    auto const& first = ranks_.front();
    wire::go go{first.place.address, first.place.master_port, first.place.jax_port, {}};
    if (first.job.hold_worker_port)
        for (auto const& rank : ranks_)
            if (rank.spare < 0) go.workers.push_back(with_port(rank.place.address, rank.place.worker_port));
    return go;
}

std::vector<rank_row> remote_ranks::rows(int inspection) const {
    return known_.rows([&](int number) -> process_sight const* {
        auto const& rank = ranks_[static_cast<std::size_t>(number)];
        return rank.inspected == inspection && rank.sight.pid != 0 ? &rank.sight : nullptr;
    });
}

void remote_ranks::give_up(int number) {
    auto& rank = (*this)[number];
    rank.link.send(wire::encode(wire::signal{SIGKILL, true}));
    rank.link.send(wire::encode(wire::bye{0}));
    rank.given_up = true;
    auto& one = known_[number];
    one.now = rank_evidence::state::gone;
    one.daemon_lost.clear();
    if (one.to_end == rank_evidence::request::guard_killed) one.to_end = rank_evidence::request::asked;
}

bool remote_ranks::any_given_up() const noexcept {
    return std::ranges::any_of(ranks_, [](remote_rank const& one) { return one.given_up; });
}

void remote_ranks::send_all(wire::message const& message) {
    auto const bytes = wire::encode(message);
    auto const to_host = std::make_shared<std::string const>(wire::encode(wire::rank_frame{wire::rank_frame::all, bytes}));
    for (auto& host : hosts_)
        if (host.link) host.link->send(to_host);
    for (auto& rank : ranks_)
        if (rank.link.has_own()) rank.link.send(bytes);
}

}  // namespace muster
