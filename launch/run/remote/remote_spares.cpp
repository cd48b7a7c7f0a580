#include "launch/run/remote/remote_spares.hpp"

#include <fmt/format.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "launch/engine/engine_table.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/run/gather_hosts.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/failure_report.hpp"

namespace muster {

namespace {

constexpr std::string_view no_other = "no other takes its place";
constexpr duration starter_grace{1.5};  ///< for a starter that was asked to end

/// Describes a spare as run_record describes one on this node.
std::string describe(rank_evidence const& known, std::string const& host, wire::ready const& place) {
    auto text = name_of_spare(known.spare, host);
    if (!place.cpus.empty()) text += ", cores " + place.cpus;
    if (place.gpu_index >= 0) text += fmt::format(", GPU {}", place.gpu_index);
    return text;
}

}  // namespace

void remote_spares::start(slot const& at, engine_command const& engine, member_world& world) {
    auto const& first = *ranks_.begin();
    remote_rank rank{.job = first.job, .common = first.common};
    auto& who = rank.job.who;
    who.rank = static_cast<int>(ranks_.size());
    who.local_rank = at.index;
    who.local_size = at.index + 1;  // as if it were the last of so many ranks
    who.node_rank = static_cast<int>(ranks_.hosts());
    who.node_count = who.node_rank + 1;
    who.host = rank.job.address = at.host;
    rank.spare = spare_of(who);
    bool const here = is_this_host(node{at.host, at.host, 1, std::nullopt, std::nullopt});
    auto command = engine;
    auto const file = fmt::format("{}/{}.{}", run_.session_dir, hosts_file_name, who.rank);
    command.files = {{file, to_lines({{at.host, {who.rank}, here, true}})}};
    command.argv.at(2) = file;  // the word after "muster remote"
    command.argv.insert(command.argv.begin() + 3, fmt::format("--first-agent={}", who.node_rank));
    write_files(command);
    auto const starter = start_engine(command, more_open_files(1), {-1, STDOUT_FILENO, STDERR_FILENO});
    auto const& added = ranks_.add(std::move(rank));
    output_.add();
    slots_.emplace(added.job.who.rank, at);
    starters_.emplace(starter, added.job.who.rank);
    log_.note_place(added.job.who.rank, name_of_spare(added.spare, at.host));
    world.add_newcomer({added.job.who}, at);
}

void remote_spares::note_place(remote_rank const& rank) {
    auto const& who = rank.job.who;
    log_.note_place(who.rank, describe(known_[who.rank], who.host, rank.place));
}

bool remote_spares::take_child(std::optional<member_world>& world, pid_t pid) {
    auto const found = starters_.find(pid);
    if (found == starters_.end()) return false;
    auto& rank = ranks_[found->second];
    starters_.erase(found);
    if (known_[rank.job.who.rank].now == rank_evidence::state::absent && events_.now() == run_phase::running)
        give_up(world, rank, false);
    return true;
}

void remote_spares::end_starters(int signal_number) {
    for (auto const& [pid, rank] : starters_) {
        ::kill(-pid, signal_number);
        ::kill(-pid, SIGCONT);
    }
    if (!starters_.empty() && signal_number != SIGKILL) loop_.after(starter_grace, [this] { end_starters(SIGKILL); });
}

void remote_spares::end_starter(int seat) {
    for (auto const& [pid, rank] : starters_) {
        if (rank != seat) continue;
        ::kill(-pid, SIGTERM);
        ::kill(-pid, SIGCONT);
        loop_.after(starter_grace, [this, pid = pid] {
            if (starters_.contains(pid)) ::kill(-pid, SIGKILL);
        });
    }
}

/// Cools the slot of a newcomer, on which the next one starts later. Returns in words what happens to its place.
std::string remote_spares::cool(std::optional<member_world> const& world, rank_evidence const& one, bool node) {
    auto const at = slots_.find(one.rank);
    if (at == slots_.end()) return std::string(no_other);
    loop_.after(duration(0), [this] { events_.look_at_hosts(); });
    if (!node && world && !world->is_wanted(one.rank)) return std::string(spare_log::not_needed);
    auto& hosts = run_.outcome.hosts;
    double const now = seconds_now();
    auto const& host = at->second.host;
    if (!node)
        hosts.note_failure(at->second, run_.options.cool_down, now, draw_chance());
    else if (!hosts.is_cooling({host, whole_host}, now))  // others may be lost with it
        hosts.note_lost(host, cool_down_of_hosts(run_.options), now, draw_chance());
    return fmt::format("another takes its place in {}", format_duration(duration(hosts.time_left(at->second, now))));
}

void remote_spares::join(member_world& world) {
    for (auto const& rank : ranks_) {
        if (rank.spare < 0) continue;
        auto const& who = rank.job.who;
        log_.note_place(who.rank, describe(known_[who.rank], who.host, rank.place));
        world.add_spare({who, rank.place.address},
                        {run_.given.nodes.at(static_cast<std::size_t>(rank.node)).name, who.local_rank});
    }
}

void remote_spares::note_end(std::optional<member_world>& world, rank_evidence const& one, bool runs) {
    if (world) world->note_end(one.rank, false, {});
    auto const fault = find_end_fault(*one.wait_status, one.memory);
    if (runs) log_.note_end(one.rank, fault ? fault->what : describe_end(*one.wait_status), cool(world, one, false));
}

/// Gives a rank up. Its slot may not be used again, because the processes there cannot be seen.
void remote_spares::give_up(std::optional<member_world>& world, remote_rank& rank, bool node) {
    auto& one = known_[rank.job.who.rank];
    if (one.over()) return;
    if (world) world->note_end(one.rank, false, {});
    bool const came = one.now != rank_evidence::state::absent;
    ranks_.give_up(one.rank);
    output_.finish(one.rank);
    log_.note_end(one.rank, node ? "is lost with its node" : came ? "is lost" : "could not be started", cool(world, one, node));
    auto& lost = run_.outcome.lost_hosts;
    auto const& name = ranks_.planned_host(rank);
    if (node && std::ranges::find(lost, name) == lost.end()) lost.push_back(name);
    events_.on_rank_gone();
}

std::vector<int> remote_spares::give_up_silent(std::optional<member_world>& world, std::vector<int> silent) {
    std::erase_if(silent, [&](int rank) {
        if (known_[rank].left_out()) {  // counts as ended
            ranks_.give_up(rank);
            output_.finish(rank);
            if (world) world->note_end(rank, true, {});
            events_.on_rank_gone();
            events_.look_at_hosts();
            return true;
        }
        bool const is_spare = !known_[rank].is_rank();
        if (is_spare) give_up(world, ranks_[rank], true);
        return is_spare;
    });
    return silent;
}

void remote_spares::signal(int number) {
    for (auto& rank : ranks_)
        if (auto const& one = known_[rank.job.who.rank]; !one.is_rank() && one.here())
            rank.link.send(wire::encode(wire::signal{number, true}));
}

}  // namespace muster
