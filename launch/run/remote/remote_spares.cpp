#include "launch/run/remote/remote_spares.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "launch/ranks/rank_name.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/failure_report.hpp"

namespace muster {

namespace {

constexpr std::string_view no_other = "no other takes its place";

/// As run_record says it of those on this node.
std::string describe(rank_evidence const& known, std::string const& host, wire::ready const& place) {
    auto text = name_of_spare(known.spare, host);
    if (!place.cpus.empty()) text += ", cores " + place.cpus;
    if (place.gpu_index >= 0) text += fmt::format(", GPU {}", place.gpu_index);
    return text;
}

}  // namespace

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
    if (runs) log_.note_end(one.rank, fault ? fault->what : describe_end(*one.wait_status), std::string(no_other));
}

/// Its slot may not be used again where what is there cannot be seen.
void remote_spares::give_up(std::optional<member_world>& world, remote_rank& rank, bool node) {
    auto& one = known_[rank.job.who.rank];
    if (one.over()) return;
    if (world) world->note_end(one.rank, false, {});
    ranks_.give_up(one.rank);
    output_.finish(one.rank);
    log_.note_end(one.rank, node ? "is lost with its node" : "is lost", std::string(no_other));
    auto& lost = run_.outcome->lost_hosts;
    auto const& name = run_.given.nodes.at(static_cast<std::size_t>(rank.node)).name;
    if (node && std::find(lost.begin(), lost.end(), name) == lost.end()) lost.push_back(name);
    events_.on_rank_gone();
}

std::vector<int> remote_spares::give_up_silent(std::optional<member_world>& world, std::vector<int> silent) {
    std::erase_if(silent, [&](int rank) {
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
