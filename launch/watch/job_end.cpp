
#include "launch/watch/job_end.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

std::string_view value_of(std::string_view record, std::string_view key) {
    for (auto const word : split(record, ' '))
        if (word.size() > key.size() && word.starts_with(key) && word[key.size()] == '=')
            return trim(word.substr(key.size() + 1));
    return {};
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) noexcept {
    return std::ranges::find(words, word) != words.end();
}

/// Returns the record from the state on: the job's name before it may contain any words. Slurm puts the reason right after the
/// state.
std::string_view from_state(std::string_view record) {
    constexpr std::string_view state = "JobState=", reason = "Reason=";
    std::size_t first = std::string_view::npos;
    for (auto at = record.find(state); at != std::string_view::npos; at = record.find(state, at + 1)) {
        if (at > 0 && record[at - 1] != ' ') continue;
        first = std::min(first, at);
        auto const end = record.find(' ', at);
        if (end != std::string_view::npos && record.substr(end + 1).starts_with(reason)) return record.substr(at);
    }
    return first == std::string_view::npos ? std::string_view{} : record.substr(first);
}

/// Returns the job's line. The last task of an array has the array's number, so Slurm prints a line for each task.
std::string_view record_of(std::string_view printed, std::string const& id) {
    auto const beginning = fmt::format("JobId={} ", id);
    for (auto const line : split(printed, '\n'))
        if (line.starts_with(beginning)) return line;
    return printed;
}

/// Reads "DOWN*+DRAIN", "IDLE+COMPLETING+NOT_RESPONDING": a star means that the node does not respond; unknown flags are ignored.
bool is_down(std::string_view state) {
    for (auto word : split(state, '+')) {
        while (!word.empty() && (word.back() < 'A' || word.back() > 'Z')) word.remove_suffix(1);  // *, ~, #, !, %, $, @, ^, -
        if (is_one_of(word, {"DOWN", "FAIL", "FAILING", "ERROR", "NOT_RESPONDING"})) return true;
    }
    return false;
}

/// Returns whether the job's time is over. Flux sends its signal at the very end, by its own clock, which may be a moment off.
bool time_is_up(allocation const& given) {
    auto const slack = std::chrono::seconds(given.scheduler == scheduler_kind::flux ? 2 : 0);
    return given.ends_at && std::chrono::system_clock::now() >= *given.ends_at - slack;
}

}  // namespace

/// A job that is ending is COMPLETING until its last process is gone; Slurm sets its reason before it sends the first signal.
job_end parse_job_end(std::string_view record, int restarts) {
    record = from_state(record);
    auto const words = value_of(record, "JobState"), reason = value_of(record, "Reason");
    auto const state = words.substr(0, words.find_first_of("+,"));
    auto const preempted_at = value_of(record, "PreemptTime");
    if (state.empty()) return job_end::unknown;
    if (is_one_of(state, {"RUNNING", "SUSPENDED", "CONFIGURING", "RESIZING", "SIGNALING", "STOPPED"})) return job_end::going_on;
    if (state == "TIMEOUT" || state == "DEADLINE" || reason == "TimeLimit") return job_end::out_of_time;
    if (state == "PREEMPTED" || (!preempted_at.empty() && preempted_at != "None")) return job_end::preempted;
    if (is_one_of(state, {"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED"}) || reason == "NodeDown" || reason == "NodeFail")
        return job_end::node_failed;
    if (state == "OUT_OF_MEMORY" || reason == "OutOfMemory") return job_end::out_of_memory;
    if (!value_of(record, "FailedNode").empty()) return job_end::node_failed;  // Slurm also puts it back into the queue
    if (parse_integer(value_of(record, "Restarts")).value_or(restarts) > restarts ||
        is_one_of(state, {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT", "EXPEDITING"}))
        return job_end::requeued;
    if (is_one_of(state, {"COMPLETING", "CANCELLED", "REVOKED"})) return job_end::cancelled;
    return job_end::unknown;
}

std::vector<std::string> parse_failed_nodes(std::string_view records, std::string_view id) {
    std::vector<std::string> failed;
    for (auto const record : split(records, '\n')) {
        if (value_of(record, "JobId") != id && value_of(record, "HetJobId") != id) continue;
        if (auto const node = value_of(from_state(record), "FailedNode"); !node.empty()) failed.emplace_back(node);
    }
    return failed;
}

std::vector<std::string> parse_down_nodes(std::string_view records) {
    std::vector<std::string> down;
    for (auto const record : split(records, '\n')) {
        auto const name = value_of(record, "NodeName"), state = value_of(record, "State");
        if (!name.empty() && is_down(state)) down.emplace_back(name);
    }
    return down;
}

std::vector<std::string> ask_down_nodes(allocation const& given, environment const& variables,
                                        std::chrono::milliseconds patience) {
    if (given.scheduler == scheduler_kind::flux) return ask_flux_down_nodes(variables, patience);
    if (given.scheduler != scheduler_kind::slurm) return {};
    std::vector<std::string> names;
    for (auto const& node : given.nodes) names.push_back(node.name);
    auto const ask = [&](slurm_ask what, std::string const& of) {
        return run_captured(slurm_words(what, {of}), variables, patience).out;
    };
    auto const down = parse_down_nodes(ask(slurm_ask::node_records, compress_hosts(names)));
    // A node that answers again is up at once, although the job is ended.
    return down.empty() && !given.job_id.empty() ? parse_failed_nodes(ask(slurm_ask::job_record, given.job_id), given.job_id)
                                                 : down;
}

/// PBS records who ended a job before it sends the first signal; a job that goes on has no such comment.
job_end end_of_pbs_job(pbs_job const& job) {
    if (job.substate >= 60 && job.substate <= 63) return job_end::requeued;
    return job.comment.find(" and terminated") != std::string::npos ? job_end::cancelled : job_end::going_on;
}

namespace {

job_end ask_pbs(std::string const& id, environment const& variables, std::chrono::milliseconds patience) {
    auto const qstat = pbs_qstat(read_text_file(variables.get_or("PBS_CONF_FILE", "/etc/pbs.conf")));
    auto const answer = run_captured({qstat, "-f", "-F", "json", id}, variables, patience);
    try {
        auto const job = parse_qstat_job(answer.out, id);
        return job ? end_of_pbs_job(*job) : job_end::unknown;
    } catch (error const&) {
        return job_end::unknown;
    }
}

}  // namespace

job_end ask_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience) {
    auto why = job_end::unknown;
    if (given.scheduler == scheduler_kind::slurm && !given.job_id.empty())
        why = parse_job_end(
            record_of(run_captured(slurm_words(slurm_ask::job_record, {given.job_id}), variables, patience).out, given.job_id),
            given.restarts);
    if (why == job_end::requeued && !ask_down_nodes(given, variables, patience).empty())
        why = job_end::node_failed;  // the requeueing is due to a lost node
    if (given.scheduler == scheduler_kind::pbs && !given.job_id.empty()) why = ask_pbs(given.job_id, variables, patience);
    if (given.scheduler == scheduler_kind::flux) why = ask_flux_job_end(given, variables, patience);
    // Slurm checks the limits every half minute, PBS every ten seconds; an end after the limit is due to it.
    bool const may_be_time = why == job_end::unknown || (why == job_end::cancelled && given.scheduler == scheduler_kind::slurm) ||
                             (why == job_end::going_on && given.scheduler == scheduler_kind::pbs) ||
                             (why == job_end::going_on && given.scheduler == scheduler_kind::flux);
    if (may_be_time && time_is_up(given)) why = job_end::out_of_time;
    return why;
}

int meaning_of(int signal_number, allocation const& given) noexcept {
    bool const ends = signal_number == SIGALRM || signal_number == SIGHUP;
    return ends && given.scheduler == scheduler_kind::flux ? SIGTERM : signal_number;
}

std::string describe(job_end why, std::string const& job_id) {
    auto const job = job_id.empty() ? std::string("the job") : fmt::format("job {}", job_id);
    switch (why) {
        case job_end::cancelled: return job + " was cancelled";
        case job_end::out_of_time: return job + " is out of time";
        case job_end::preempted: return job + " was preempted by another job";
        case job_end::requeued: return job + " was put back into the queue";
        case job_end::node_failed: return job + " has lost a node, as the scheduler says";
        case job_end::out_of_memory: return job + " is out of memory";
        case job_end::going_on:
        case job_end::unknown: return {};
    }
    return {};
}

std::string explain_time_limit(std::string_view limit, bool signals_ranks, bool goes_on) {
    auto text = fmt::format("its time limit{}{} was reached; give it more (--time)", limit.empty() ? "" : " of ", limit);
    if (!signals_ranks)
        text += ", or let it save before that (--signal-before-end USR1@5min)";
    else
        text += ", or more time to save than --signal-before-end gives now";
    return text + (goes_on ? "" : ", and go on in the next job (muster submit --chain N)");
}

std::string explain_time_limit(environment const& variables, bool signals_ranks, bool requeues) {
    auto const start = variables.get_int("SLURM_JOB_START_TIME"), end = variables.get_int("SLURM_JOB_END_TIME");
    auto const limit = start && end && *end > *start ? format_duration(duration(*end - *start)) : std::string();
    bool const chained =
        variables.get_int("MUSTER_CHAIN_LINK").value_or(0) < variables.get_int("MUSTER_CHAIN_LENGTH").value_or(0);
    return explain_time_limit(limit, signals_ranks, chained || requeues);
}

namespace {

using nlohmann::json;

/// A busy machine starts flux slowly; SIGKILL comes 5 s after the signals.
constexpr std::chrono::milliseconds least_patience{2500};  // for all questions together
/// Flux writes the log some 0.05 s after the signals.
constexpr std::array pauses{timespec{0, 0}, timespec{0, 100'000'000}, timespec{0, 200'000'000}};

/// Maps the types of RFC 21 that end a job from outside; "exec" is the job's own fault.
job_end end_of_exception(std::string const& type) {
    if (type == "timeout") return job_end::out_of_time;
    if (type == "cancel") return job_end::cancelled;
    if (type == "node-failure") return job_end::node_failed;
    if (type == "preempt") return job_end::preempted;
    return job_end::unknown;
}

}  // namespace

job_end parse_flux_events(std::string_view events) {
    auto found = job_end::unknown;
    for (auto const line : split(events, '\n')) {
        auto const event = parse_json_or_discard<json>(line);
        if (!event.is_object()) continue;
        found = job_end::going_on;
        try {
            if (event.value("name", "") != "exception") continue;
            auto const context = event.value("context", json::object());
            if (context.value("severity", 7) == 0) return end_of_exception(context.value("type", ""));
        } catch (json::exception const&) {  // not an event of a job
        }
    }
    return found;
}

job_end ask_flux_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience) {
    if (given.job_id.empty()) return job_end::unknown;
    std::vector<std::string> question{"flux", "job", "eventlog", "--format=json", given.job_id};
    if (!variables.has("FLUX_JOB_ID")) question.insert(question.begin() + 1, "--parent");
    auto end = job_end::unknown;
    auto const until = std::chrono::steady_clock::now() + std::max(patience, least_patience);
    for (auto const pause : pauses) {
        ::nanosleep(&pause, nullptr);
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
        if (left.count() <= 0) break;
        auto const answer = run_captured(question, variables, left);
        end = answer.exit_status == 0 ? parse_flux_events(answer.out) : job_end::unknown;
        if (end != job_end::going_on) break;
    }
    return end;
}

std::vector<std::string> parse_flux_hosts(std::string_view printed) {
    std::vector<std::string> hosts;
    for (auto const line : split(printed, '\n')) try {
            for (auto& host : expand_hostlist(trim(line), "flux resource status")) hosts.push_back(std::move(host));
        } catch (error const&) {  // a warning
        }
    return hosts;
}

std::vector<std::string> ask_flux_down_nodes(environment const& variables, std::chrono::milliseconds patience) {
    return parse_flux_hosts(run_captured({"flux", "resource", "status", "--states=offline", "--no-header", "--format={nodelist}"},
                                         variables, patience)
                                .out);
}

}  // namespace muster
