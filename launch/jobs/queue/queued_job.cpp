#include "launch/jobs/queue/queued_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "launch/jobs/queue/flux_jobs.hpp"
#include "launch/scheduler/flux.hpp"
#include "launch/system/signals.hpp"

namespace muster {

namespace {

constexpr std::size_t squeue_fields = 10;
constexpr std::size_t least_fields = 3;  ///< both numbers and the state: a shorter line is no row

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) noexcept {
    return std::ranges::find(words, word) != words.end();
}

/// A job in a state that squeue lists and that is not known here has not ended: Slurm forgets an ended job after some minutes,
/// and then it counts as over. A job that has used time runs.
job_phase slurm_phase(std::string_view state, std::string_view used) noexcept {
    if (is_one_of(state, {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD", "CONFIGURING",
                          "EXPEDITING"}))
        return job_phase::waiting;
    if (is_one_of(state, {"RUNNING", "SUSPENDED", "STOPPED", "COMPLETING", "STAGE_OUT", "SIGNALING", "RESIZING"}))
        return job_phase::running;
    if (is_one_of(state, {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
                          "OUT_OF_MEMORY", "LAUNCH_FAILED", "RECONFIG_FAIL", "REVOKED"}))
        return job_phase::ended;
    return used.find_first_of("123456789") == std::string_view::npos ? job_phase::waiting : job_phase::running;
}

std::string unless_none(std::string_view text) {
    text = trim(text);
    return is_one_of(text, {"None", "N/A", "(null)", "Unknown", "n/a", "INVALID", "NOT_SET"}) ? std::string() : std::string(text);
}

/// Returns the exit code as a shell shows it: from "3:0" and "0:9", code and signal (23.02 and later), or from "768", a wait
/// status (up to 22.05). Returns nothing for anything else, such as the word for a code that Slurm does not know.
std::optional<int> read_exit_code(std::string_view text) {
    text = trim(text);
    auto const number = [](std::string_view digits, std::int64_t most) {
        auto const value = parse_integer(digits);
        return value && *value >= 0 && *value <= most ? value : std::nullopt;
    };
    if (auto const colon = text.find(':'); colon != std::string_view::npos) {
        auto const code = number(text.substr(0, colon), 255), signal = number(text.substr(colon + 1), 127);
        if (!code || !signal) return std::nullopt;
        return static_cast<int>(*signal > 0 ? 128 + *signal : *code);
    }
    auto const status = number(text, 0xffff);
    return status ? std::optional(shell_code(static_cast<int>(*status))) : std::nullopt;
}

bool begins_with_digit(std::string_view text) noexcept {
    return !text.empty() && is_digit(text.front());
}

/// A row begins with the job's number: the job exists whatever its other fields hold.
std::optional<queued_job> read_squeue_line(std::string_view line) {
    std::array<std::string_view, squeue_fields> fields;
    std::size_t count = 0;
    for (bool more = true; more && count < squeue_fields; ++count) {
        auto const end = count + 1 < squeue_fields ? line.find('|') : std::string_view::npos;
        fields[count] = trim(line.substr(0, end));
        more = end != std::string_view::npos;
        line.remove_prefix(more ? end + 1 : line.size());
    }
    if (count < least_fields || !(begins_with_digit(fields[0]) || begins_with_digit(fields[1]))) return std::nullopt;
    // The state of "CANCELLED by 7777" is its first word.
    auto const state = fields[2].substr(0, fields[2].find_first_of(" ,+"));
    queued_job job{.id = unless_none(fields[1]),
                   .raw_id = unless_none(fields[0]),
                   .name = std::string(fields[9]),
                   .state = state.empty() ? "UNKNOWN" : std::string(state),
                   .phase = slurm_phase(state, fields[6]),
                   .reason = unless_none(fields[4]),
                   .nodes = unless_none(fields[5]),
                   .used = unless_none(fields[6]),
                   .limit = unless_none(fields[7]),
                   .start = unless_none(fields[8])};
    if (job.id.empty()) job.id = job.raw_id;
    if (job.raw_id.empty()) job.raw_id = job.id;
    if (job.phase == job_phase::ended) job.status = read_exit_code(fields[3]);
    return job;
}

struct wait_words {
    std::string_view beginning;  ///< of the reason
    std::string_view meaning;
};

/// The first match counts. From squeue's manual, "JOB REASON CODES".
constexpr wait_words slurm_reasons[]{
    {"Resources", "it is next, and waits until enough nodes are free"},
    {"Priority", "jobs with a higher priority are before it"},
    {"DependencyNeverSatisfied", "the job that it depends on did not end as it must; this job will never start: cancel it"},
    {"Dependency", "it waits for another job"},
    {"BeginTime", "its earliest start time has not come; a job that was put back into the queue waits about two minutes"},
    {"JobHeldUser", "it is held; release it by scontrol release"},
    {"JobHeldAdmin", "it is held by the site; ask the site"},
    {"JobHoldMaxRequeue", "it was put back into the queue too often, and is held"},
    {"JobArrayTaskLimit", "as many tasks of the array run as the array allows at a time"},
    {"ReqNodeNotAvail", "nodes that it needs are down, drained or reserved; a maintenance may be planned before it could end"},
    {"Reservation", "it waits for its reservation"},
    {"PartitionTimeLimit", "its time is more than the partition allows; ask for less"},
    {"PartitionNodeLimit", "it asks for more, or fewer, nodes than the partition allows"},
    {"PartitionDown", "the partition is down; ask the site"},
    {"PartitionInactive", "the partition takes no jobs now; ask the site"},
    {"BadConstraints", "no node has what it asks for; cancel it and ask for something else"},
    {"InvalidAccount", "its account is not valid; cancel it and give --account"},
    {"InvalidQOS", "its quality of service is not valid; cancel it and give --queue"},
    {"AccountNotAllowed", "its account may not use this partition"},
    {"Licenses", "it waits for a licence"},
    {"NodeDown", "a node that it needs is down"},
    {"Cleaning", "it was put back into the queue, and its former run is being cleaned up"},
    {"Prolog", "its nodes are being prepared"},
    {"user env retrieval failed",
     "it is held: --export=NAME=VALUE and --get-user-env ask for the login environment, which `su - user` could not read on its "
     "node; cancel it, and submit it with the variables in your own environment and --export=ALL"},
    {"job requeued in held state", "it was put back into the queue and is held; release it by scontrol release"},
    {"Nodes required for job are DOWN",
     "nodes that it needs are down, drained, or kept for jobs of partitions with a higher priority"},
    {"launch failed requeued held",
     "it could not be started on its nodes, and is held; release it by scontrol release, or ask the site"},
};

/// Explains "QOSMaxGRESPerUser" or "AssocGrpNodeLimit": who limits what, and how.
std::string explain_limit(std::string_view reason) {
    bool const by_qos = reason.starts_with("QOS");
    auto rest = reason.substr(by_qos ? 3 : 5);
    auto const who = by_qos ? "its quality of service (queue)" : "your account";
    std::string_view how = "a limit";
    if (rest.starts_with("Grp"))
        how = "the limit of all of its jobs together", rest.remove_prefix(3);
    else if (rest.starts_with("Max"))
        how = "the most that one job or user may have", rest.remove_prefix(3);
    else if (rest.starts_with("Min"))
        return fmt::format("{} wants at least more than it asks for ({})", who, reason);
    std::string_view what = "what it asks for";
    for (auto const& [word, meaning] : {std::pair<std::string_view, std::string_view>{"GRES", "GPUs"},
                                        {"Gres", "GPUs"},
                                        {"Node", "nodes"},
                                        {"Cpu", "cores"},
                                        {"CPU", "cores"},
                                        {"Mem", "memory"},
                                        {"Wall", "time"},
                                        {"Submit", "submitted jobs"},
                                        {"Job", "jobs at a time"},
                                        {"Billing", "the budget"}})
        if (rest.find(word) != std::string_view::npos) {
            what = meaning;
            break;
        }
    return fmt::format("{} has reached {}, in {}; it starts when others of them end", who, how, what);
}

/// Explains PBS' comment, or the attribute that marks a held job.
std::string explain_pbs_wait(std::string_view reason) {
    auto const value = without_controls(reason.substr(reason.find('=') + 1));
    if (reason.starts_with("Hold_Types="))
        return value == "u" ? "it is held; release it by qrls" : fmt::format("it is held by the site (Hold_Types={})", value);
    if (reason.starts_with("depend=")) return fmt::format("it waits for another job ({})", value);
    if (reason.starts_with("Execution_Time=")) return fmt::format("its earliest start time has not come ({})", value);
    constexpr std::string_view prefix = "Not Running: ";
    return without_controls(reason.starts_with(prefix) ? reason.substr(prefix.size()) : reason);
}

}  // namespace

std::vector<queued_job> parse_squeue(std::string_view printed) {
    std::vector<queued_job> jobs;
    for (auto const line : split(printed, '\n'))
        if (auto job = read_squeue_line(line)) jobs.push_back(*std::move(job));
    return jobs;
}

void sort_tasks(std::vector<queued_job>& jobs) {
    // "12_3" and "12[3].server" give the array and the index; a row of tasks that have not begun ("12_[4-9]") has no index and
    // comes last.
    auto const place = [](queued_job const& job) {
        auto const mark = job.id.find_first_of("_[");
        auto const digits = mark == std::string::npos ? std::string_view() : std::string_view(job.id).substr(mark + 1);
        auto const index = parse_integer(digits.substr(0, digits.find(']')));
        return std::pair(job.id.substr(0, mark), index.value_or(mark == std::string::npos ? -1 : INT64_MAX));
    };
    std::map<std::string, std::size_t> first;  // the first position of each array
    for (auto const& job : jobs) first.try_emplace(place(job).first, first.size());
    std::ranges::stable_sort(jobs, [&](queued_job const& a, queued_job const& b) {
        auto const [one, i] = place(a);
        auto const [other, j] = place(b);
        return std::pair(first[one], i) < std::pair(first[other], j);
    });
}

bool is_meant(queued_job const& job, std::string_view asked) {
    if (job.id == asked || job.raw_id == asked) return true;
    std::string_view const id = job.id;
    auto const begins_with = [&](std::string_view number) {
        return number.size() > asked.size() && number.starts_with(asked) &&
               (number[asked.size()] == '_' || number[asked.size()] == '.');
    };
    if (begins_with(id)) return true;
    auto const array = pbs_array_of(job.id);  // "5[].server" of "5[3].server"
    if (array == asked || begins_with(array)) return true;
    auto plain = array;  // "5.server"
    if (auto const brackets = plain.find("[]"); brackets != std::string::npos) plain.erase(brackets, 2);
    return plain == asked || begins_with(plain);
}

int watch_code(queued_job const& job) noexcept {
    if (is_one_of(job.state, {"TIMEOUT", "DEADLINE"})) return 124;
    if (is_one_of(job.state, {"CANCELLED", "CANCELED", "PREEMPTED", "REVOKED"})) return 143;
    if (job.state == "OUT_OF_MEMORY") return 137;
    if (is_one_of(job.state, {"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"})) return 125;
    if (job.state == "FAILED" && (job.status == 0 || job.reason.starts_with("node-failure"))) return 125;
    return job.status.value_or(125);
}

std::string explain_wait(queued_job const& job) {
    if (is_waiting_in_flux(job.state)) return explain_flux_wait(job);
    auto const& reason = job.reason;
    if (reason.empty()) return "the scheduler gives no reason yet";
    if (job.state.size() == 1) return explain_pbs_wait(reason);
    for (auto const& row : slurm_reasons)
        if (reason.starts_with(row.beginning)) return fmt::format("{} ({})", row.meaning, without_controls(reason));
    if (reason.starts_with("QOS") || reason.starts_with("Assoc"))
        return fmt::format("{} ({})", explain_limit(reason), without_controls(reason));
    return without_controls(reason);
}

std::string explain_no_start(queued_job const& job) {
    bool const never_started = job.used.empty() || job.used == "0:00" || job.used == "00:00:00";
    if (job.phase != job_phase::ended || !never_started) return {};
    if (job.reason == "DependencyNeverSatisfied")
        return fmt::format("the job that it depends on did not end as it must ({})", job.reason);
    if (job.reason == "BadConstraints") return fmt::format("no node has what it asks for ({})", job.reason);
    return {};
}

namespace {

bool is_part_of_number(char c) noexcept {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-' || c == '[' || c == ']';
}

/// Flux's numbers are f and base-58 digits, which leave out 0, I, O and l.
bool is_flux_number(std::string_view word) noexcept {
    constexpr std::string_view digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    return word.size() > 1 && word.size() <= 12 && word.front() == 'f' &&
           word.find_first_not_of(digits, 1) == std::string_view::npos;
}

}  // namespace

bool is_sluid(std::string_view word) noexcept {
    constexpr std::string_view digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";  // Crockford's base 32
    return word.size() == 14 && word.front() == 's' && word.find_first_not_of(digits, 1) == std::string_view::npos;
}

std::optional<std::string> number_of_sluid(std::string_view records, std::string_view sluid) {
    for (auto const line : split(records, '\n')) {
        std::string_view job, array, task;
        bool is_it = false;
        for (auto const word : split(line, ' ')) {
            auto const value = [&](std::string_view key) {
                return word.starts_with(key) ? word.substr(key.size()) : std::string_view();
            };
            if (job.empty()) job = value("JobId=");
            if (array.empty()) array = value("ArrayJobId=");
            if (task.empty()) task = value("ArrayTaskId=");
            is_it = is_it || value("SLUID=") == sluid;
        }
        if (!is_it || !parse_integer(job)) continue;
        if (array.empty()) return std::string(job);
        return parse_integer(task) ? fmt::format("{}_{}", array, task) : std::string(array);
    }
    return std::nullopt;
}

bool is_job_number(std::string_view word) noexcept {
    if (is_flux_number(plain_flux_id(word))) return true;
    return !word.empty() && word.size() < 200 && is_digit(word.front()) && std::ranges::all_of(word, is_part_of_number);
}

namespace {

/// Returns the last line that is a number (perhaps with a cluster) or sbatch's sentence with one; else empty. A site's wrapper
/// prints further lines and may drop --parsable.
std::string_view line_of_number(std::string_view printed) {
    constexpr std::string_view in_words = "Submitted batch job ";
    std::string_view found;
    for (auto line : split(printed, '\n')) {
        line = trim(line);
        bool const says_so = line.starts_with(in_words);
        if (says_so) line.remove_prefix(in_words.size());
        if (is_job_number(line.substr(0, line.find_first_of(says_so ? "; " : ";")))) found = line;
    }
    return found;
}

}  // namespace

bool is_file_name(std::string_view name) {
    return !name.empty() && name.front() != '.' && name.find('/') == std::string_view::npos && name.size() < 200 &&
           without_controls(name) == name;
}

std::string parse_job_cluster(std::string_view printed) {
    constexpr std::string_view in_words = " on cluster ";
    auto const line = line_of_number(printed);
    auto const at = line.find(';'), words = line.find(in_words);
    auto const name = at != std::string_view::npos      ? line.substr(at + 1)
                      : words != std::string_view::npos ? line.substr(words + in_words.size())
                                                        : std::string_view();
    return is_file_name(name) ? std::string(name) : std::string();
}

bool is_federated(std::string_view id) noexcept {
    auto const number = parse_integer(id.substr(0, id.find_first_of("_+")));
    return number && *number >= 1 << 26;  // higher bits name the cluster that the job was submitted to
}

std::optional<std::string> parse_job_number(std::string_view printed) {
    auto const line = line_of_number(printed);
    auto const number = line.substr(0, line.find_first_of("; "));
    return line.empty() ? std::nullopt : std::optional(plain_flux_id(number));
}

}  // namespace muster
