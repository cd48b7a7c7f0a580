#include "launch/watch/generation_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "launch/watch/judge_guards.hpp"

namespace muster {

std::string_view judging::name_of(guard which) {
    constexpr std::array<std::string_view, static_cast<std::size_t>(guard::count_)> names{"holds who is left",
                                                                                          "cause takes the suspect's place",
                                                                                          "cause takes the loss's place",
                                                                                          "loss before followers",
                                                                                          "loss before too few",
                                                                                          "held before followers"};
    return names[static_cast<std::size_t>(which)];
}

namespace {

using judging::guard;
using judging::holds;

/// Returns whether the verdict blames a rank that ended because of another one.
bool blames_follower(evidence const& known, verdict const& judged) {
    return judged.of_rank && follows(known[judged.culprits.front().rank]);
}

/// Blames a rank whose end nothing else explains.
verdict blame_ended(evidence const& known, rank_evidence const& rank) {
    auto const fault = fault_of(rank);
    return blame_rank(known, rank.rank, failure_cause::rank_end, fault->what, fault->exit_code, fault->advice);
}

/// Returns whether nobody is blamed, since those that are left cannot go on.
bool too_few_are_left(verdict const& judged) {
    return judged.cause == failure_cause::rank_end && judged.culprits.empty();
}

}  // namespace

verdict judge_member_end(evidence const& known, int number, bool others_go_on) {
    if (!fault_of(known[number]) || !others_go_on || known.reader_gone) return judge_end(known, number);
    return blame_ended(known, known[number]);
}

bool hold_end(evidence& known, verdict const& held) {
    if (!held.culprits.empty()) known.suspect = held.culprits.front().rank;
    return !std::exchange(known.deciding, true);
}

std::string describe_loss(evidence const& known, verdict const& judged) {
    if (!judged.of_rank) return fmt::format("lost {}", known.list([&](auto const& one) { return judged.blames(one.rank); }));
    auto const& rank = known[judged.culprits.front().rank];
    auto const fault = fault_of(rank);
    return fmt::format("{} {}", known.name_of(rank), fault ? fault->what : "ended");
}

void note_loss(evidence& known, std::optional<generation_loss>& loss, verdict const& judged) {
    known.suspect = -1;
    int const first = judged.culprits.front().rank;
    if (known[first].left_out()) return;
    bool const explains = loss && holds(guard::cause_takes_the_losss_place,
                                        blames_follower(known, loss->judged) && !blames_follower(known, judged), false);
    if (!loss || loss->member < 0 || explains)
        loss = {judged, describe_loss(known, judged), known.members[static_cast<std::size_t>(first)]};
}

bool note_held(evidence& known, std::optional<generation_loss>& loss) {
    auto const before = loss;
    auto const note = [&](rank_evidence const& rank) {
        if (rank.in_generation() && fault_of(rank)) note_loss(known, loss, blame_ended(known, rank));
    };
    if (known.suspect >= 0) note(known[known.suspect]);
    for (auto const& rank : known.ranks) note(rank);
    return loss != before;
}

generation_end end_of(generation_loss const& loss, evidence const& known) {
    auto const& [judged, what, member] = loss;
    auto const& culprit = judged.culprits.front();
    return {.kind = judged.of_rank                        ? end_kind::rank
                    : judged.cause == failure_cause::node ? end_kind::node
                                                          : end_kind::other,
            .code = judged.exit_code,
            .cause = what,
            .rank = known[culprit.rank].shown(),
            .member = member,
            .host = culprit.host};
}

namespace {

/// Returns the verdict or, if it blames a rank that ended because of another one, one that blames a rank whose end was still held, or a host.
verdict without_follower(evidence const& known, verdict judged) {
    if (!holds(guard::held_before_followers, blames_follower(known, judged), false)) return judged;
    auto const first = std::ranges::find_if(
        known.ranks, [](rank_evidence const& rank) { return rank.in_generation() && fault_of(rank) && !follows(rank); });
    if (first == known.ranks.end()) return blame_lost(known).value_or(std::move(judged));
    return blame_ended(known, *first);
}

}  // namespace

verdict blame_for_end(evidence const& known, std::optional<generation_loss> const& loss, verdict judged) {
    judged = blame_stopped_instead(known, std::move(judged));
    bool const few = loss && holds(guard::loss_before_too_few, too_few_are_left(judged), false);
    bool const follows_it = loss && holds(guard::loss_before_followers, blames_follower(known, judged), false);
    if (!few && !follows_it) return without_follower(known, std::move(judged));
    auto const why = few ? ", and " + judged.text : std::string();
    auto const& first = loss->judged;
    if (!first.of_rank) {
        auto blamed = first;
        blamed.text = loss->what + why + known.ending();
        return blamed;
    }
    int const rank = first.culprits.front().rank;
    auto const fault = fault_of(known[rank]);
    return without_follower(
        known, fault ? blame_rank(known, rank, first.cause, fault->what + why, fault->exit_code, fault->advice) : judged);
}

}  // namespace muster
