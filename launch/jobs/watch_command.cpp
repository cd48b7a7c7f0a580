// `muster watch` follows jobs from their queue to their end, with what their ranks write.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <set>

#include "base/command/print_note.hpp"
#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/logs/gpu_lines.hpp"
#include "launch/jobs/logs/log_tail.hpp"
#include "launch/jobs/logs/watch_screen.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/job_poll.hpp"
#include "launch/watch/job_end.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

constexpr auto ask_each = std::chrono::seconds(5);      ///< from one question to the scheduler to the next, however many jobs
constexpr auto look_each = std::chrono::seconds(2);     ///< between looks at files of other machines, for which no event comes
constexpr auto pause = std::chrono::milliseconds(100);  ///< from one look to the next if much is written

/// A job that was asked for; an array includes all its tasks.
struct watched_job {
    std::string id;
    std::optional<job_record> record;
    std::map<std::string, queued_job> known;  ///< by the number as shown
    bool ended = false;
    int code = 0;
};

std::string state_line(queued_job const& job) {
    switch (job.phase) {
        case job_phase::waiting:
            return fmt::format("job {}: {}: {}{}", job.id, job.state, explain_wait(job),
                               job.start.empty() ? "" : fmt::format("; expected to start at {}", job.start));
        case job_phase::running:
            return fmt::format("job {}: {} on {} {}{}{}", job.id, job.state, job.nodes, job.nodes == "1" ? "node" : "nodes",
                               job.start.empty() ? "" : " since " + job.start, job.limit.empty() ? "" : ", limit " + job.limit);
        case job_phase::ended:
        case job_phase::unknown: break;
    }
    // A job that never started has code 0, and its reason is what it waited for: both say nothing about its end.
    bool const never_started = job.used.empty() || job.used == "0:00" || job.used == "00:00:00";
    if (auto const no_start = explain_no_start(job); never_started && job.state.starts_with("CANCELLED"))
        return fmt::format("job {}: {} before it started{}{}", job.id, job.state, no_start.empty() ? "" : ": ", no_start);
    return fmt::format("job {}: {}{}{}{}", job.id, job.state, job.used.empty() ? "" : " after " + job.used,
                       job.status ? fmt::format(", exit code {}", *job.status) : "",
                       job.reason.empty() ? "" : fmt::format(" ({})", without_controls(job.reason)));
}

/// Returns whether the job's script contains the option, whether it came from options, variables or a job file.
bool has_in_script(std::optional<job_record> const& record, std::string_view option) {
    return record && !record->script.empty() && read_text_file(record->script).find(option) != std::string::npos;
}

std::string explain_limit_of(queued_job const& job, std::optional<job_record> const& record) {
    bool const goes_on = has_in_script(record, ".muster-chain/") || has_in_script(record, "--requeue-saved");
    return explain_time_limit(job.limit, has_in_script(record, "--signal-before-end"), goes_on);
}

class job_watcher {
  public:
    /// `saved_code` is the code of a job that another one continues.
    job_watcher(queue_kind kind, std::vector<std::string> const& ids, settings_result const& given, environment const& variables)
        : kind_(kind),
          variables_(variables),
          poll_([kind, &variables](auto const& asked) { return list_jobs(kind, asked, variables); },
                [this](std::string const& note) { screen_.print_state(note); }),
          saved_code_(given.integer("saved-code").value_or(0)),
          several_(ids.size() > 1),
          finder_(kind, variables),
          tail_(make_tail_choice(given), [this](auto const& job, auto const& who, auto const& line) {
              screen_.print_line(several_ ? job : std::string(), who, line);
          }) {
        for (auto const& id : ids) jobs_.push_back({id, find_job_record(id, given, variables), {}, false, 0});
    }

    int run() {
        ask();
        for (;;) {
            auto const ends_at = asked_at_ + ask_each;
            read_logs();
            show_gpus();
            if (std::ranges::all_of(jobs_, [](auto const& job) { return job.ended; })) break;
            wait_until(std::min(ends_at, clock::now() + look_each));
            if (clock::now() >= ends_at) ask();
        }
        tail_.finish();
        screen_.end();
        for (auto const& why : {tail_.why_no_rank(), tail_.why_no_script()})
            if (!why.empty()) print_note(why);
        for (auto const& why : tail_.other_jobs()) print_note(why);
        for (auto const& job : jobs_)
            if (job.code != 0 && job.code != saved_code_) return job.code;
        return jobs_.back().code;
    }

  private:
    void ask() {
        asked_at_ = clock::now();
        std::vector<std::string> ids;
        for (auto const& job : jobs_)
            if (!job.ended) ids.push_back(job.id);
        auto const answers = poll_.ask(ids);
        if (!answers) return;
        for (auto& job : jobs_)
            if (!job.ended) update(job, *answers);
        show_status();
    }

    void update(watched_job& job, std::vector<queued_job> const& answers) {
        bool found = false, goes_on = false;
        for (auto const& answer : answers) {
            if (!is_meant(answer, job.id)) continue;
            found = true;
            several_ = several_ || (answer.id != job.id && !answer.id.starts_with(job.id + "."));  // PBS' server may be left out
            auto& known = job.known[answer.id];
            // A job begins with a reason and then gets a start; the last state of an array's task comes twice, X and then F.
            bool const was_over = known.phase == job_phase::ended && known.status == answer.status;
            bool const changed = (known.state != answer.state && !was_over) ||
                                 (known.reason != answer.reason && answer.phase == job_phase::waiting);
            known = answer;
            if (changed && answer.phase == job_phase::ended) {
                // The job's output is shown before its end.
                finder_.note_end(answer.id);
                tail_.follow(answer.id, finder_.find({answer.id, answer.raw_id}, job.record));
                tail_.look();
            }
            if (changed) screen_.print_state(state_line(answer));
            if (changed && answer.phase == job_phase::ended && answer.state == "TIMEOUT")
                screen_.print_state(fmt::format("job {}: {}", answer.id, explain_limit_of(answer, job.record)));
            if (changed && answer.phase == job_phase::ended && saved_code_ != 0 && answer.status == saved_code_ && job.record)
                screen_.print_state(fmt::format("job {}: {}", answer.id, explain_saved(job)));
            if (auto const why = changed ? finder_.explain_failure(answer) : std::string(); !why.empty())
                screen_.print_state(fmt::format("job {}: {}", answer.id, why));
        }
        if (!found) return lose(job);
        for (auto const& [id, known] : job.known)
            // The row of tasks that have not begun ("4_[1-3]") disappears when the last of them gets its own row.
            if (std::ranges::any_of(answers, [&](auto const& a) { return a.id == known.id; })) {
                goes_on = goes_on || known.phase != job_phase::ended;
                if (known.phase == job_phase::ended && job.code == 0) job.code = code_of(known, job.record);
            }
        if (goes_on) job.code = 0;
        job.ended = !goes_on;
    }

    /// Explains a job whose ranks have saved to continue in another one: in a chain, the next link that is watched, waits or
    /// runs.
    std::string explain_saved(watched_job const& job) const {
        if (!has_in_script(job.record, ".muster-chain/")) return "saved: submit it again to go on";
        std::optional<std::int64_t> next;
        auto const consider = [&](std::string const& id, std::optional<job_record> const& record) {
            auto const number = number_in(id);
            if (record && record->script == job.record->script && number > number_in(job.id))
                next = std::min(number, next.value_or(number));
        };
        for (auto const& other : jobs_) consider(other.id, other.record);
        try {
            for (auto const& other : list_jobs(kind_, {}, variables_))
                if (other.phase != job_phase::ended) consider(other.id, find_job_record(other.id, variables_));
        } catch (error const&) {
            if (!next) return "saved";  // the scheduler does not answer now
        }
        if (next) return fmt::format("saved, and goes on in job {}", *next);
        return "saved, and no other job of the chain waits or runs: submit it again if there is work left";
    }

    /// Returns the number that begins a job's id with both schedulers.
    static std::int64_t number_in(std::string const& id) { return std::strtoll(id.c_str(), nullptr, 10); }

    /// PBS does not say how a forgotten task of an array ended, but the run's record may.
    static int code_of(queued_job const& known, std::optional<job_record> const& record) {
        auto const recorded = known.status ? std::nullopt : last_run_exit(find_job_files(known.raw_id, record));
        return recorded.value_or(watch_code(known));
    }

    /// Handles a job that the scheduler has forgotten or never knew: its runs' records may say how it ended.
    void lose(watched_job& job) {
        std::vector<job_number> numbers;
        for (auto const& [id, known] : job.known) numbers.push_back({id, known.raw_id});
        if (numbers.empty()) numbers = list_tasks(job.id, job.record);
        if (numbers.empty()) numbers.push_back({job.id, job.id});
        several_ = several_ || numbers.size() > 1;
        job.ended = true;
        for (auto const& number : numbers) lose_task(job, number);
    }

    /// Does not end the watch of several jobs if nobody knows one of them.
    void lose_task(watched_job& job, job_number const& task) {
        auto const& number = task.shown;
        auto const files = finder_.find(task, job.record);
        auto const known =
            std::ranges::find_if(job.known, [&](auto const& row) { return row.second.raw_id == task.raw && row.second.status; });
        auto const exit = known != job.known.end() ? std::optional(watch_code(known->second)) : last_run_exit(files);
        bool const idle = !exit && had_nothing_to_do(files);
        if (!exit && !idle && job.known.empty() && !job.record && files.output.empty() && files.errors.empty()) {
            auto const fault = fmt::format("job {}: the scheduler does not know it (any more); muster jobs lists yours{}", job.id,
                                           where_recorded(job.id, variables_));
            if (jobs_.size() == 1) throw error(errc::not_found, fault);
            job.code = 125;
            return screen_.print_state(fault);
        }
        if (job.code == 0) job.code = exit.value_or(idle ? 0 : 125);
        if (known == job.known.end())
            screen_.print_state(
                exit   ? fmt::format("job {}: ended; exit code {}, as {}/run.json says", number, *exit, files.run_folders.back())
                : idle ? fmt::format("job {}: ended; it had nothing left to do, as {} says", number, files.output)
                       : fmt::format("job {}: the scheduler does not know it any more, and no run of it has left an exit code",
                                     number));
        tail_.follow(number, files);
    }

    void read_logs() {
        for (auto const& job : jobs_)
            for (auto const& [id, known] : job.known) {
                // The files of a waiting job may belong to another job of that name or number; the row of an array's waiting
                // tasks has the number of the last. A job that has run and waits again may begin before the scheduler is asked
                // again, and its ranks then write to a new folder.
                if (known.phase != job_phase::waiting) begun_.insert(id);
                if (begun_.contains(id)) tail_.follow(id, finder_.find({id, known.raw_id}, job.record));
            }
        tail_.look();
        screen_.flush();
    }

    /// Shows the GPUs of the running jobs, from each job's last run.
    void show_gpus() {
        std::vector<std::string> lines;
        std::vector<node_sample> all;
        auto const now = static_cast<double>(std::time(nullptr));
        for (auto const& job : jobs_)
            for (auto const& [id, known] : job.known) {
                if (job.ended || known.phase != job_phase::running) continue;
                auto const folders = finder_.find({id, known.raw_id}, job.record).run_folders;
                if (folders.empty()) continue;
                auto const nodes = read_gpu_nodes(folders.back());
                for (auto const& line : gpu_lines(nodes, now)) lines.push_back(several_ ? fmt::format("{} {}", id, line) : line);
                all.insert(all.end(), nodes.begin(), nodes.end());
            }
        screen_.show_gpus(lines, gpu_overview(all));
    }

    void wait_until(clock::time_point when) {
        auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(when - clock::now()).count() + 1;
        pollfd changed{tail_.event_fd(), POLLIN, 0};
        if (left <= 0 || ::poll(&changed, 1, static_cast<int>(left)) <= 0) return;
        // More events are about to come: one look is enough for all of them.
        ::poll(nullptr, 0, static_cast<int>(pause.count()));
        tail_.clear();
    }

    void show_status() {
        std::vector<std::string> states;
        for (auto const& job : jobs_)
            for (auto const& [id, known] : job.known)
                if (!job.ended && known.phase != job_phase::ended)
                    states.push_back(
                        fmt::format("{} {}{}", known.id, known.state,
                                    known.phase == job_phase::running ? fmt::format(" {} of {}", known.used, known.limit) : ""));
        screen_.show_status(join(states, ", "));
    }

    queue_kind kind_;
    environment const& variables_;
    job_poll poll_;
    int saved_code_;
    bool several_;
    std::vector<watched_job> jobs_;
    std::set<std::string> begun_;  ///< jobs that have run, by the number as shown
    job_file_finder finder_;
    watch_screen screen_;
    log_tail tail_;
    clock::time_point asked_at_{};
};

}  // namespace

int watch_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("watch", options_first("watch", args), real_settings(variables));
    if (print_help_if_asked("watch", given)) return 0;
    auto const ids = job_numbers(given.command, "watch", variables);
    return job_watcher(find_queue(variables), ids, given, variables).run();
}

}  // namespace muster
