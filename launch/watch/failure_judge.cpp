#include "launch/watch/failure_judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/system/signals.hpp"
#include "launch/watch/failure_report.hpp"
#include "launch/watch/judge_guards.hpp"

namespace muster {

namespace {

using judging::guard;
using judging::holds;
using state = rank_evidence::state;

constexpr duration abort_patience{0.3};    ///< for a message that says why a rank of an MPI world has ended
constexpr duration peer_patience{2};       ///< for the end of the rank that made another one fail
constexpr duration exit_code_patience{3};  ///< for the exit code of an engine that ended its ranks
constexpr int open_mpi_lost_others = 14;   ///< MPI_ERR_UNKNOWN, with which Open MPI 5 aborts when other ranks, or PMIx, are gone
constexpr std::string_view engine_remote = "remote";
constexpr std::string_view advice_on_leaving = "call MPI_Finalize on every path";
constexpr std::string_view advice_on_singletons =
    "use an MPI with PMIx or PMI-1 (Open MPI, MPICH) on every rank, or --allow-singletons if that is meant";

std::vector<culprit> name_all(evidence const& known, evidence::condition const& of) {
    std::vector<culprit> named;
    for (auto const& rank : known.ranks)
        if (of(rank)) named.push_back({rank.rank, known.host_of(rank)});
    return named;
}

verdict hold(duration patience, std::vector<culprit> suspect = {}) {
    return {.next = verdict::step::hold, .patience = patience, .culprits = std::move(suspect)};
}

verdict give_up(verdict judged) {
    judged.gives_up = true;
    return judged;
}

verdict blame_all(evidence const& known, failure_cause cause, evidence::condition const& of, std::string text, int code) {
    auto judged = blame_run(cause, std::move(text), code);
    judged.culprits = name_all(known, of);
    return judged;
}

/// Returns whether a signal ended the rank that a scheduler or an engine sends to all ranks.
bool may_be_sent(rank_evidence const& rank) {
    return rank.wait_status && may_be_sent_to_all(*rank.wait_status) && rank.memory != memory_verdict::in_cgroup &&
           rank.memory != memory_verdict::either;
}

/// Returns the stopped rank for which, by its last lines, this one waited ("rank 1 (node2): process 13069 is stopped"); -1 if
/// they name no rank.
int stopped_rank_of(evidence const& known, rank_evidence const& rank) {
    constexpr std::string_view stopped = " is stopped", before = ": process ", mark = "rank ";
    std::string_view const said = rank.last_lines;
    auto const end = said.find(stopped);
    auto const process = end == said.npos ? said.npos : said.rfind(before, end);
    auto const start = process == said.npos ? said.npos : said.rfind(mark, process);
    if (start == said.npos || said.substr(start, end - start).find('\n') != said.npos) return -1;
    auto const digits = said.substr(start + mark.size(), said.find(' ', start + mark.size()) - start - mark.size());
    auto const number = parse_integer(digits);
    for (auto const& one : known.ranks)
        if (number && one.is_rank() && one.shown() == *number && &one != &rank && one.now == state::running) return one.rank;
    return -1;
}

/// Blames a stopped rank if this one waited for it and then failed.
std::optional<verdict> blame_stopped(evidence const& known, rank_evidence const& rank) {
    auto const fault = fault_of(rank);
    int const stopped = fault ? stopped_rank_of(known, rank) : -1;
    if (stopped < 0) return std::nullopt;
    return blame_rank(known, stopped, failure_cause::rank_end,
                      fmt::format("is stopped, so {}, which waited for it, {}", known.name_of(rank), fault->what),
                      fault->exit_code, "SIGCONT lets a stopped process go on: see what sent it SIGSTOP");
}

/// Blames this rank. If the run may go on, a stopped rank is blamed only later, by blame_stopped_instead(), when it cannot.
verdict blame_end(evidence const& known, rank_evidence const& rank, std::string_view advice = {}) {
    auto const fault = fault_of(rank);
    if (known.members.empty())
        if (auto const stopped = blame_stopped(known, rank)) return *stopped;
    bool const by_kernel = rank.memory == memory_verdict::in_cgroup || rank.memory == memory_verdict::either ||
                           rank.memory == memory_verdict::on_node;
    bool const own = advice.empty() || (by_kernel && !fault->advice.empty());
    return blame_rank(known, rank.rank, failure_cause::rank_end, fault->what, fault->exit_code,
                      own ? std::string_view(fault->advice) : advice);
}

/// Returns whether its last lines say that another rank has left, whose exit may wait for others, or was lost, which its node
/// will report.
bool is_left_behind(rank_evidence const& rank) {
    auto const says = [&](std::string_view words) { return rank.last_lines.find(words) != std::string::npos; };
    return says(ended_exchange_words) || says(lost_rank_words);
}

/// Returns whether this rank's end explains that of the suspect.
bool takes_place(evidence const& known, rank_evidence const& rank) {
    return holds(guard::cause_takes_the_suspects_place, follows(known[known.suspect]) && !follows(rank), false);
}

/// Delays a decision on the first end, since what killed that rank may be about to kill all.
verdict suspect(evidence const& known, rank_evidence const& rank, duration patience) {
    bool const suspected = known.suspect < 0 || takes_place(known, rank);
    return hold(patience, suspected ? std::vector{culprit{rank.rank, known.host_of(rank)}} : std::vector<culprit>{});
}

// ------------------------------------------------------------------------------------------------ rules of judge_cause
// Each says who is to blame, or leaves that to the next rule.

verdict by_abort(evidence const& known) {
    if (!known.abort) return {};
    auto const& word = *known.abort;
    int const code = word.code & 0xff;
    return blame_rank(
        known, word.rank, failure_cause::abort,
        fmt::format("aborted the job with code {} ({}){}", word.code, word.by, word.said.empty() ? "" : ": " + word.said),
        code == 0 ? 1 : code);
}

/// The scheduler says that it ends the job. A job that outlives its nodes (salloc --no-kill) goes on, but srun ends the step on
/// all of them.
verdict by_job(evidence const& known) {
    if (!known.scheduler) return {.next = verdict::step::ask_scheduler};
    auto const& [end, down] = *known.scheduler;
    bool const step_is_lost = end == job_end::going_on && !down.empty();
    auto const why = describe(step_is_lost ? job_end::node_failed : end, known.job_id);
    if (why.empty()) return {};
    auto const is_down = [&](auto const& r) { return std::find(down.begin(), down.end(), r.node) != down.end(); };
    auto const lost = known.list(is_down);
    if (step_is_lost && lost.empty()) return {};
    if (known.engine.empty() || !(end == job_end::node_failed || step_is_lost))
        return blame_run(failure_cause::job_end, why + known.ending(), 128 + SIGTERM);
    // Ranks on the lost nodes are no longer awaited.
    auto const left = known.count([&](auto const& r) { return r.running() && !is_down(r); });
    bool const ends_job = known.keeps_nodes && end == job_end::node_failed;
    return give_up(
        blame_all(known, failure_cause::node, is_down,
                  fmt::format("{}{}{}{}", why, lost.empty() ? "" : fmt::format(" ({})", lost),
                              left == 0 ? "" : fmt::format("; ending {}", count_of_ranks(left)),
                              ends_job ? "; Slurm ends such a job with it: to go on, ask for the job with --no-kill" : ""),
                  exit_code(errc::peer_failed)));
}

/// Returns whether a rank may have ended its step by MPI_Abort, of which Slurm says what it says of a cancelled one.
bool may_be_aborted_by_rank(evidence const& known) {
    return known.engine == "srun" && known.speaks != wire_up::none && known.count([](auto const& r) { return r.uses_mpi; }) > 0;
}

/// Somebody has cancelled a step of the job (scancel JOB.STEP), which kills its ranks, their watchers and agents. If srun has
/// killed nothing by itself, it ends with the signal's code; after MPI_Abort by PMIx with that one's, by PMI-2 with the signal's.
verdict by_cancelled_step(evidence const& known) {
    if (known.cancelled_step.empty()) return {};
    if (may_be_aborted_by_rank(known)) {
        auto const* const first = known.suspect >= 0 ? &known[known.suspect] : nullptr;
        if (known.speaks == wire_up::pmi || (first != nullptr && !may_be_sent(*first) && !follows(*first))) return {};
        if (!known.engine_status) return known.engine_awaited ? verdict{} : hold(exit_code_patience);
        if (int const code = shell_code(*known.engine_status); code != 128 + SIGKILL && code != 128 + SIGTERM) return {};
    }
    return blame_run(failure_cause::job_end, fmt::format("step {} was cancelled{}", known.cancelled_step, known.ending()),
                     128 + SIGTERM);
}

/// The engine was killed, and its ranks after it.
verdict by_killed_engine(evidence const& known) {
    if (!known.engine_status || !WIFSIGNALED(*known.engine_status)) return {};
    return blame_run(failure_cause::engine,
                     fmt::format("{} {}, and with it the start of the ranks was lost{}", known.engine,
                                 describe_end(*known.engine_status), known.ending()),
                     exit_code(errc::peer_failed));
}

verdict by_daemon(evidence const& known) {
    if (known.first_orphan < 0) return {};
    auto const& orphan = known[known.first_orphan];
    auto const is_there = [&](auto const& r) { return r.node == orphan.node; };
    return blame_all(known, failure_cause::daemon, is_there,
                     fmt::format("{} on {} died, which had started {}{}", orphan.daemon_lost, known.host_of(orphan),
                                 known.list(is_there), known.ending()),
                     exit_code(errc::peer_failed));
}

/// A rank has left its MPI world, and the others fail because of that. A fault of memory or arithmetic is a rank's own, perhaps
/// from its last moments after MPI_Finalize, when some ranks have ended.
verdict by_leaver(evidence const& known) {
    auto const* victim = known.suspect >= 0 ? &known[known.suspect] : nullptr;
    if (!known.started) return {};
    if (victim != nullptr && victim->wait_status && WIFSIGNALED(*victim->wait_status) &&
        !may_be_sent_to_all(*victim->wait_status))
        return {};
    auto const* leaver = known.find_leaver(known.suspect);
    if (leaver == nullptr) return {};
    auto const then = victim != nullptr ? fmt::format("{} {}", known.name_of(*victim), fault_of(*victim)->what)
                                        : fmt::format("{} ended them", known.engine);
    return blame_all(
        known, failure_cause::left_world, [&](auto const& r) { return &r == leaver; },
        fmt::format("{} {} while others were in its MPI world, so probably without MPI_Finalize, and then "
                    "{}{}; call MPI_Finalize on every path",
                    known.name_of(*leaver), describe_end(leaver->wait_status.value_or(0)), then, known.ending()),
        1);
}

/// Returns whether Slurm's PMIx may have killed the world and its watchers after a rank's MPI_Abort. The first end that is
/// reported may then be that of any rank, and srun's exit code is the one given to MPI_Abort.
bool may_be_aborted(evidence const& known) {
    return known.engine == "srun" && known.suspect >= 0 && !known[known.suspect].was_asked() && known[known.suspect].uses_mpi &&
           known.count(state::lost) > 0;
}

bool none_is_left(evidence const& known) {
    return known.count([](auto const& r) { return r.over(); }) == known.ranks.size();
}

/// The engine ends its ranks: MPI_Abort, a limit, a lost node. Its exit code says which.
verdict by_exit_code_of_engine(evidence const& known) {
    if (known.engine.empty() || known.engine_status || known.engine_awaited) return {};
    bool const by_engine = known.asked || (known.suspect >= 0 && known[known.suspect].was_asked()) || may_be_aborted(known) ||
                           none_is_left(known) || (!known.started && known.count(state::absent) > 0);
    return by_engine ? hold(exit_code_patience) : verdict{};
}

verdict by_engine(evidence const& known) {
    if (!known.engine_status || shell_code(*known.engine_status) == 0) return {};
    auto const why = known.cancelled_step.empty() || known.speaks != wire_up::pmi
                         ? fmt::format("MPI_Abort of a rank, a fault of {}, or a limit of the scheduler", known.engine)
                         : fmt::format("MPI_Abort of a rank, or step {} was cancelled", known.cancelled_step);
    return blame_run(
        failure_cause::engine,
        fmt::format("{} ended its ranks and {} ({}: see above)", known.engine, describe_end(*known.engine_status), why),
        shell_code(*known.engine_status));
}

verdict by_aborted_step(evidence const& known) {
    if (!may_be_aborted(known)) return {};
    if (auto const waits = by_exit_code_of_engine(known); waits.next != verdict::step::go_on) return waits;
    if (!known.engine_status || !WIFEXITED(*known.engine_status)) return {};
    int const code = WEXITSTATUS(*known.engine_status);
    if (code == 0 || code > 128 || code == open_mpi_lost_others || code == fault_of(known[known.suspect])->exit_code) return {};
    auto const called = [&](auto const& r) { return r.wait_status && *r.wait_status == *known.engine_status; };
    auto const caller = std::find_if(known.ranks.begin(), known.ranks.end(), called);
    return caller == known.ranks.end() ? by_engine(known) : blame_end(known, *caller);
}

/// Slurm's PMIx kills a world and its watchers when one of its ranks dies, and that rank's watcher may not have reported it.
verdict by_suspect(evidence const& known) {
    if (known.suspect < 0 || known[known.suspect].was_asked()) return {};
    auto const& rank = known[known.suspect];
    if (!rank.uses_mpi || known.count(state::lost) == 0) return blame_end(known, rank);
    return blame_end(known, rank,
                     fmt::format("{} killed others at the same moment: another rank may have failed first", known.engine));
}

verdict blame_watchers(evidence const& known, evidence::condition const& of) {
    bool const one = known.count(of) == 1;
    return blame_all(known, failure_cause::watcher, of,
                     fmt::format("the {} of {} {} killed{}", one ? "watcher" : "watchers", known.list(of), one ? "was" : "were",
                                 known.ending()),
                     exit_code(errc::peer_failed));
}

bool is_watcher_killed(rank_evidence const& rank) {
    return rank.to_end == rank_evidence::request::guard_killed;
}

/// Watchers have ended without a message while others, and their nodes, live: the engine then ends the others.
verdict by_watchers(evidence const& known) {
    auto const is_lost = [](rank_evidence const& rank) { return is_watcher_killed(rank) || rank.now == state::lost; };
    auto const lost = known.count(is_lost);
    auto const cut = known.count([&](auto const& r) { return is_watcher_killed(r) || (r.now == state::lost && r.cut); });
    if (!known.started || cut == 0 || cut != lost || lost == known.ranks.size()) return {};
    return blame_watchers(known, is_lost);
}

/// Slurm's PMIx kills a world that one rank has left early, and does not name the rank.
verdict by_early_end(evidence const& known) {
    auto const left = std::find_if(known.ranks.begin(), known.ranks.end(), [](auto const& r) { return r.left_early; });
    bool const by_engine = !known.engine.empty() && known.engine != engine_remote;
    if (!by_engine || !none_is_left(known) || left == known.ranks.end()) return {};
    return blame_rank(known, left->rank, failure_cause::left_world,
                      fmt::format("{}, probably without MPI_Finalize, and {} then ended the others",
                                  describe_end(left->wait_status.value_or(0)), known.engine),
                      1, advice_on_leaving);
}

verdict by_absence(evidence const& known) {
    if (known.started) return {};  // newcomers are on their way
    auto const absent = known.list(state::absent);
    if (absent.empty()) return {};
    return blame_all(
        known, failure_cause::never_came, [](auto const& r) { return r.now == state::absent; },
        fmt::format("{} {} before {} of {} ranks came up: {}; see its own message above, and check those nodes with "
                    "muster doctor --allocation",
                    known.engine, known.engine_status ? describe_end(*known.engine_status) : "ended its ranks",
                    known.count(state::absent), known.ranks.size(), absent),
        exit_code(errc::unavailable));
}

/// When SIGKILL has ended one process, Hydra kills all others with it and ends with that number.
verdict by_killed_watcher(evidence const& known) {
    if (known.first_killed < 0 || !known.engine_status || (shell_code(*known.engine_status) & 0x7f) != SIGKILL) return {};
    return blame_watchers(known, [&](auto const& r) { return r.rank == known.first_killed; });
}

verdict by_loss(evidence const& known) {
    if (known.count(state::lost) == 0) return {};
    return blame_all(
        known, failure_cause::node, [](auto const& r) { return r.now == state::lost; },
        fmt::format("lost {}: the node is gone, or what started the ranks there was killed{}", known.list(state::lost),
                    known.ending()),
        exit_code(errc::peer_failed));
}

verdict by_request(evidence const& known) {
    if (known.suspect < 0) return {};
    auto const& rank = known[known.suspect];
    auto const fault = fault_of(rank);
    return blame_all(
        known, failure_cause::job_end, [&](auto const& r) { return &r == &rank; },
        fmt::format("{} {}, which {} or the scheduler had sent to its ranks{}", known.name_of(rank), fault->what, known.engine,
                    known.ending()),
        fault->exit_code);
}

/// Returns why ranks may be missing after an engine's end without a message.
std::string advice_on_absent(evidence const& known) {
    if (!known.unknown_hosts.empty())
        return fmt::format("no address is known here of {}: correct the name", fmt::join(known.unknown_hosts, ", "));
    return "check that every node has this muster at the same path, and see the command with --dry-run";
}

}  // namespace

end_kind kind_of_end(verdict const& judged, evidence const& known, bool first) {
    // A job's end ends every generation.
    if (known.scheduler && known.scheduler->end != job_end::going_on && known.scheduler->end != job_end::unknown)
        return end_kind::last;
    switch (judged.cause) {
        case failure_cause::node: return end_kind::node;
        case failure_cause::rank_end:
        case failure_cause::abort:
        case failure_cause::left_world: return known.started || !first ? end_kind::rank : end_kind::last;
        case failure_cause::engine:
        case failure_cause::daemon:
        case failure_cause::watcher: return known.started || !first ? end_kind::other : end_kind::last;
        case failure_cause::never_came: return first ? end_kind::last : end_kind::other;
        default: return end_kind::last;
    }
}

bool is_from_outside(failure_cause cause) noexcept {
    constexpr std::array causes{failure_cause::job_end, failure_cause::node,   failure_cause::engine,     failure_cause::daemon,
                                failure_cause::watcher, failure_cause::output, failure_cause::reader_gone};
    return std::find(causes.begin(), causes.end(), cause) != causes.end();
}

bool is_from_outside(rank_evidence const& rank) noexcept {
    if (!rank.wait_status || !WIFSIGNALED(*rank.wait_status) || rank.memory == memory_verdict::in_cgroup) return false;
    constexpr std::array signals{SIGKILL, SIGTERM, SIGINT, SIGHUP};
    return std::find(signals.begin(), signals.end(), WTERMSIG(*rank.wait_status)) != signals.end();
}

std::optional<end_fault> fault_of(rank_evidence const& rank) {
    if (!rank.wait_status || rank.ended_well()) return std::nullopt;
    auto fault = find_end_fault(*rank.wait_status, rank.memory);
    if (fault && rank.killed_as_stopped)
        fault->advice = "muster sent it, since the rank was stopped: see what sent it SIGSTOP, or froze its cgroup";
    return fault;
}

bool follows(rank_evidence const& rank) {
    return rank.was_asked() || is_left_behind(rank) ||
           (rank.uses_mpi && rank.wait_status && shell_code(*rank.wait_status) == open_mpi_lost_others);
}

verdict blame_run(failure_cause cause, std::string text, int code) {
    return {.next = verdict::step::end, .cause = cause, .exit_code = code, .text = std::move(text)};
}

verdict blame_rank(evidence const& known, int rank, failure_cause cause, std::string const& what, int code,
                   std::string_view advice) {
    auto const& culprit = known[rank];
    auto const others = known.running() - (culprit.now == state::running ? 1 : 0);
    bool const quotes = known.quotes && (cause == failure_cause::rank_end || known.engine.empty());
    auto judged = blame_all(
        known, cause, [&](auto const& r) { return &r == &culprit; },
        describe(failure_report{known.name_of(culprit), what, known.lived, others, std::string(advice), known.list_early_ends(),
                                culprit.last_lines, quotes}),
        code);
    judged.of_rank = true;
    return judged;
}

verdict blame_agent(evidence const& known, int rank) {
    auto const is_there = [node = known[rank].node](auto const& r) { return r.node == node; };
    return blame_all(known, failure_cause::daemon, is_there,
                     fmt::format("{} was lost before all ranks were there: that of {}", agent_process, known.list(is_there)),
                     exit_code(errc::peer_failed));
}

verdict judge_end(evidence const& known, int number) {
    auto const& rank = known[number];
    if (!fault_of(rank)) return judge_world(known);
    bool const by_pipe = WIFSIGNALED(*rank.wait_status) && WTERMSIG(*rank.wait_status) == SIGPIPE;
    // This is silent, like any program whose output goes to head.
    if (by_pipe && known.reader_gone) return blame_run(failure_cause::reader_gone, {}, 128 + SIGPIPE);
    if (!known.engine.empty()) {
        if (may_be_sent(rank)) return suspect(known, rank, blame_patience);
        if (rank.uses_mpi || known.deciding) return suspect(known, rank, abort_patience);
        if (holds(guard::holds_who_is_left, is_left_behind(rank), false)) return suspect(known, rank, peer_patience);
        return blame_end(known, rank);
    }
    if (known.suspect >= 0) return takes_place(known, rank) ? blame_end(known, rank) : verdict{};
    if (holds(guard::holds_who_is_left, is_left_behind(rank) && known.running() > 0, false))
        return suspect(known, rank, peer_patience);
    // A scheduler ends a job by signals to all of its processes, and the ranks may get theirs first.
    return known.in_job && may_be_sent(rank) ? suspect(known, rank, blame_patience) : blame_end(known, rank);
}

verdict judge_cause(evidence const& known) {
    static constexpr std::array rules{by_abort,     by_job,          by_cancelled_step, by_killed_engine, by_daemon,
                                      by_leaver,    by_aborted_step, by_suspect,        by_watchers,      by_exit_code_of_engine,
                                      by_early_end, by_absence,      by_killed_watcher, by_engine,        by_loss,
                                      by_request};
    for (auto* const rule : rules)
        if (auto judged = rule(known); judged.next != verdict::step::go_on) return judged;
    return {};  // a signal after which ranks live on, such as Slurm's --signal=TERM@120
}

verdict judge_world(evidence const& known) {
    if (!known.started || (known.engine.empty() && known.suspect >= 0)) return {};
    std::optional<std::size_t> in_world;
    for (auto const& rank : known.ranks) {
        if (!rank.left_early || !rank.settled) continue;
        if (rank.in_world()) {
            return blame_rank(known, rank.rank, failure_cause::left_world,
                              fmt::format("{} but without MPI_Finalize, so the others would wait for it forever",
                                          describe_end(*rank.wait_status)),
                              1, advice_on_leaving);
        }
        if (rank.connected() || known.allow_singletons || known.size() < 2) continue;
        if (!rank.mpi_elsewhere.empty())
            return blame_rank(known, rank.rank, failure_cause::singleton,
                              fmt::format("came up as a singleton: it uses {} but never connected to the other {} ranks, so its "
                                          "result is that of one rank alone",
                                          rank.mpi_elsewhere, known.size() - 1),
                              exit_code(errc::singleton), advice_on_singletons);
        // A rank that has left its world, as muster's own collectives do at once, makes nobody there wait.
        if (!in_world) in_world = known.count([](auto const& r) { return r.in_world(); });
        if (*in_world > 0)
            return blame_rank(known, rank.rank, failure_cause::singleton,
                              fmt::format("came up as a singleton or without MPI: it {} and never connected, and "
                                          "{} of {} ranks wait for it",
                                          describe_end(*rank.wait_status), *in_world, known.size()),
                              exit_code(errc::singleton), advice_on_singletons);
    }
    return {};
}

verdict judge_engine_end(evidence const& known) {
    int const status = *known.engine_status;
    if (known.first_lost >= 0 || known.deciding || WIFSIGNALED(status)) return {.next = verdict::step::ask_scheduler};
    auto const absent = known.started ? std::string() : known.list(state::absent);  // later ones are newcomers
    auto const is_absent = [](auto const& r) { return r.now == state::absent; };
    int const code = shell_code(status);
    // The engine has named the host that is to blame; the other absent ranks were on their way.
    if (!absent.empty() && known.engine == engine_remote)
        return blame_run(failure_cause::never_came,
                         "no rank was started, for the reason above; muster doctor --allocation examines every node",
                         exit_code(errc::unavailable));
    if (!absent.empty())
        return blame_all(
            known, failure_cause::never_came, is_absent,
            fmt::format("{} {} before {} of {} ranks came up ({}); its own message is above; {}", known.engine,
                        describe_end(status), known.count(state::absent), known.ranks.size(), absent, advice_on_absent(known)),
            exit_code(errc::unavailable));
    return blame_run(failure_cause::engine,
                     fmt::format("{} {} while {} of {} ranks were running", known.engine, describe_end(status), known.running(),
                                 known.ranks.size()),
                     code == 0 ? exit_code(errc::unavailable) : code);
}

verdict judge_late_engine(evidence const& known) {
    if (!known.engine_status || shell_code(*known.engine_status) == 0) return {};
    return blame_run(failure_cause::engine,
                     fmt::format("every rank ended well, but {} {}; its own message is above", known.engine,
                                 describe_end(*known.engine_status)),
                     shell_code(*known.engine_status));
}

/// If all are silent, the job is suspended; if some are, they are stopped or their nodes are lost.
verdict judge_silence(evidence const& known, std::vector<int> const& silent, duration time) {
    auto const is_silent = [&](rank_evidence const& r) { return std::binary_search(silent.begin(), silent.end(), r.rank); };
    if (silent.empty() || silent.size() == known.count(state::running)) return {};
    // If all ranks of a node are silent, the node is to blame rather than its watchers.
    auto const answers = [&](rank_evidence const& r) { return r.now == state::running && !is_silent(r); };
    bool const nodes = std::none_of(silent.begin(), silent.end(), [&](int one) {
        return known.count([&](auto const& r) { return r.node == known[one].node && answers(r); }) > 0;
    });
    auto const lost = [&](rank_evidence const& r) { return r.now == state::lost || is_silent(r); };
    auto const who = known.list(lost);
    bool const one = silent.size() == 1;
    auto const what = nodes ? fmt::format(
                                  "lost {}: nothing there has answered for {} (--heartbeat), and other nodes have: without "
                                  "power, cut off or stopped",
                                  who, format_duration(time))
                            : fmt::format("the {} of {} {} not answered for {} (--heartbeat), and others have: stopped, perhaps",
                                          one ? "watcher" : "watchers", who, one ? "has" : "have", format_duration(time));
    auto const left = known.count([&](auto const& r) { return r.running() && !is_silent(r); });
    return give_up(blame_all(known, nodes ? failure_cause::node : failure_cause::watcher, is_silent,
                             fmt::format("{}; ending {}", what, count_of_ranks(left)), exit_code(errc::peer_failed)));
}

std::optional<verdict> blame_lost(evidence const& known) {
    auto const is_lost = [](rank_evidence const& r) { return r.in_generation() && r.now == state::lost; };
    if (known.count(is_lost) == 0) return std::nullopt;
    return blame_all(known, failure_cause::node, is_lost,
                     fmt::format("lost {}: nothing there answers (--heartbeat){}", known.list(is_lost), known.ending()),
                     exit_code(errc::peer_failed));
}

verdict judge_silent_agent(evidence const& known, int rank, duration time) {
    auto const is_there = [node = known[rank].node](auto const& r) { return r.node == node; };
    return blame_all(known, failure_cause::daemon, is_there,
                     fmt::format("{}, which had started {}, has not answered for {} (--heartbeat): stopped, perhaps{}",
                                 agent_process, known.list(is_there), format_duration(time), known.ending()),
                     exit_code(errc::peer_failed));
}

verdict explain_request_to_end(evidence const& known) {
    auto const& [end, down] = *known.scheduler;
    auto const why = describe(end, known.job_id);
    if (why.empty()) return {};
    if (end != job_end::node_failed || known.engine.empty()) return blame_run(failure_cause::job_end, why, 0);
    auto const is_down = [&](auto const& r) { return std::find(down.begin(), down.end(), r.node) != down.end(); };
    auto const lost = known.list(is_down);
    return give_up(blame_all(known, failure_cause::node, is_down, lost.empty() ? why : fmt::format("{} ({})", why, lost),
                             exit_code(errc::peer_failed)));
}

verdict blame_stopped_instead(evidence const& known, verdict judged) {
    if (!judged.of_rank || judged.culprits.empty()) return judged;
    return blame_stopped(known, known[judged.culprits.front().rank]).value_or(std::move(judged));
}

}  // namespace muster
