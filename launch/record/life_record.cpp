#include "launch/record/life_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/elastic/lives.hpp"
#include "launch/record/growth.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds requeue_limit{60'000};  ///< a busy slurmctld makes scontrol retry for a while

void append(std::string const& path, std::string const& line) {
    auto const file = open_output_file(path, "give another --lives-file", if_there::kept);
    ::lseek(file.get(), 0, SEEK_END);
    write_all(file.get(), line, path);
}

std::string stop_file_of(std::string const& lives_file) {
    auto path = fs::path(lives_file);
    return (path.extension() == ".lives" ? path.replace_extension(".stopped") : path += ".stopped").string();
}

std::int64_t last_saved_step(run_context const& run) {
    auto last = run.outcome.saved_step;
    for (auto const& one : run.life.ends) last = std::max(last, one.saved_step);
    return last;
}

progress_signs signs_of(run_context const& run, int code, std::vector<program_life> const& former) {
    auto const& outcome = run.outcome;
    double const end = outcome.failed_s < 0 ? seconds_now() : outcome.failed_s;
    using signs = progress_signs;
    auto const has_metric = [](generation_end const& one) { return one.metric_s >= 0; };
    auto const was_measured = [](program_life const& one) { return one.measured; };
    bool const now = outcome.metric_s >= 0 || std::any_of(run.life.ends.begin(), run.life.ends.end(), has_metric);
    bool const before = std::any_of(former.begin(), former.end(), was_measured);
    std::int64_t saved_before = -1;
    for (auto const& one : former) saved_before = std::max(saved_before, one.saved_step);
    return {.code = code,
            .ended = outcome.from_outside             ? signs::ending::from_outside
                     : code == run.options.saved_code ? signs::ending::saved
                                                      : signs::ending::by_itself,
            .lived = duration(outcome.started_s < 0 ? 0 : end - outcome.started_s),
            .must_grow = run.options.must_grow,
            .grew = has_grown(run.options.must_grow, run.life.first_size),
            .metric = now      ? signs::measured::now
                      : before ? signs::measured::before
                               : signs::measured::never,
            .saved_further = last_saved_step(run) > saved_before};
}

/// Makes the file that later jobs look for; only its existence counts. The earlier lives are no longer needed.
void mark_done(run_options const& options) {
    if (!options.success_file.empty())
        static_cast<void>(open_output_file(options.success_file, "give another --success-file", if_there::kept));
    std::error_code fault;
    if (!options.lives_file.empty()) fs::remove(options.lives_file, fault);
}

/// Records the end. Returns why no further life should follow; empty: one may.
std::string note_end(run_context const& run, int code) {
    auto const& path = run.options.lives_file;
    if (path.empty()) return {};
    auto lives = parse_lives(read_text_file(path));
    if (lives.empty()) lives.push_back({.number = run.life.first_life + run.life.now.number, .job = run.given.job_id});
    auto& own = lives.back();
    auto const signs = signs_of(run, code, {lives.begin(), lives.end() - 1});
    own.code = code;
    own.measured = signs.metric == progress_signs::measured::now;
    own.saved_step = last_saved_step(run);
    own.standstill = find_standstill(signs, true);
    append(path, ended_line(own));
    auto const why = why_no_more(lives);
    if (why.empty()) return {};
    auto const stop_file = stop_file_of(path);
    write_output_file(stop_file, why + "\n", "give another --lives-file");
    fmt::print(
        stderr,
        "muster: error: no further start: {}; find out why, then submit a new chain, or remove {} to go on with this one\n", why,
        stop_file);
    return why;
}

void note_early_end(run_context const& run) {
    if (run.options.quiet || (run.options.success_file.empty() && run.options.lives_file.empty())) return;
    fmt::print(stderr,
               "muster: note: the ranks ended with 0 after the signal that announces the end of the job's time, so their work "
               "does not count as done, and the next "
               "job goes on; let a program that has saved end with {}, and use 0 for work that is done\n",
               run.options.saved_code);
}

/// Returns the nodes that the next start must avoid: those that the user has excluded, and the lost ones; empty if no node is
/// lost.
std::string nodes_to_exclude(run_context const& run) {
    auto const& id = run.given.job_id;
    if (run.outcome.lost_hosts.empty() || run.given.scheduler != scheduler_kind::slurm) return {};
    auto const record = run_captured(slurm_words(slurm_ask::job_in_detail, {id}), run.inherited, requeue_limit).out;
    auto const excluded = parse_scontrol_job(record, id).excluded;
    return excluded + (excluded.empty() ? "" : ",") + compress_hosts(run.outcome.lost_hosts);
}

/// Slurm may take minutes to notice that a node is lost (SlurmdTimeout), and start the job there again. It accepts this only for
/// a pending job, whose processes it ends at that moment, including scontrol.
void exclude(run_context const& run, std::string const& nodes) {
    if (nodes.empty()) return;
    auto const words = slurm_words(slurm_ask::exclude_nodes, {run.given.job_id, nodes});
    auto answer = run_captured(words, run.inherited, requeue_limit);
    if (answer.exit_status > 128) answer = run_captured(words, run.inherited, requeue_limit);
    auto const lost = compress_hosts(run.outcome.lost_hosts);
    if (answer.exit_status != 0)
        print_note("the next start may be on {} again: {}: {}", lost, shell_join(words),
                   without_controls(trim(answer.err.empty() ? answer.out : answer.err)));
    else if (!run.options.quiet)
        fmt::print(
            stderr,
            "muster: note: job {} does not start on {} again; once it is repaired: scontrol update JobId={} ExcNodeList=\n",
            run.given.job_id, lost, run.given.job_id);
}

/// Returns whether Slurm, or somebody, has put the job back into the queue since it began: by a preemption or scontrol requeue.
/// Its record may be late, but the answer's text is not.
bool is_back_already(run_context const& run, command_output const& answer) {
    if (run.given.scheduler != scheduler_kind::slurm) return false;
    if ((answer.err + answer.out).find("pending execution") != std::string::npos) return true;
    auto const& id = run.given.job_id;
    auto const record = run_captured(slurm_words(slurm_ask::job_in_detail, {id}), run.inherited, requeue_limit).out;
    return parse_scontrol_job(record, id).restarts.value_or(0) > std::max(run.given.restarts, 0);
}

void requeue(run_context const& run) {
    auto const& id = run.given.job_id;
    auto const words = slurm_words(slurm_ask::requeue, {id});
    auto const excluded = nodes_to_exclude(run);
    auto const answer = run.given.scheduler == scheduler_kind::slurm
                            ? run_captured(words, run.inherited, requeue_limit)
                            : command_output{.exit_status = 1, .err = "it is no job of Slurm"};
    bool const back = answer.exit_status != 0 && is_back_already(run, answer);
    if (answer.exit_status != 0 && !back)
        return fmt::print(stderr, "muster: error: job {} is not started again: {}: {}; submit it once more, or use --chain N\n",
                          id.empty() ? "?" : id, shell_join(words),
                          without_controls(trim(answer.err.empty() ? answer.out : answer.err)));
    if (!run.options.quiet)
        fmt::print(stderr, "muster: note: job {} is back in the queue{}, and goes on when Slurm starts it again\n", id,
                   back ? " already" : "");
    exclude(run, excluded);
}

}  // namespace

run_life begin_life(run_plan const& run) {
    auto const& path = run.options.lives_file;
    auto const former = path.empty() ? std::vector<program_life>() : parse_lives(read_text_file(path));
    auto const number = [&](char const* name) { return run.inherited.get_int(name).value_or(0); };
    auto life = run.life;
    if (life.is_first()) {
        life.first_life =
            life_number(former, number("MUSTER_CHAIN_LINK"), std::max(run.given.restarts, number("SLURM_RESTART_COUNT")));
        life.first_size = measure_growth(run.options.must_grow);
    }
    if (path.empty() || run.options.dry_run || run.options.print_env) return life;
    int const generation = life.now.number;
    append(path, began_line({.number = life.first_life + generation, .job = run.given.job_id}, generation));
    return life;
}

void end_life(run_context const& run, int code) {
    if (run.options.dry_run || run.options.print_env) return;
    if (code == 0 && !run.outcome.early_signal) return mark_done(run.options);
    if (code == 0) note_early_end(run);
    auto const why_not = note_end(run, code);
    // Slurm itself takes minutes to notice that a node is lost (SlurmdTimeout), and this job has ended by then.
    bool const goes_on = (code == run.options.saved_code && code != 0) || run.outcome.lost_node;
    if (run.options.requeue_saved && goes_on && why_not.empty()) requeue(run);
}

}  // namespace muster
