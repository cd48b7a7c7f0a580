// `muster logs`: what the ranks of a job have written.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/logs/log_tail.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/job_poll.hpp"

namespace muster {

namespace {

constexpr int look_ms = 2000;                       ///< at files of other machines, of which no event tells
constexpr auto ask_each = std::chrono::seconds(5);  ///< the scheduler

bool has_ended(job_files const& files, std::string const& number) {
    if (files.run_folders.empty()) return false;
    auto const& last = files.run_folders.back();
    return read_run_exit(last) || was_killed_here(last, number);
}

/// What the scheduler tells of the job whose logs are read: whether it goes on, and the numbers that its files have.
class followed_job {
  public:
    followed_job(std::string id, std::optional<job_record> record, environment const& variables)
        : id_(std::move(id)), record_(std::move(record)), numbers_{id_} {
        try {
            auto const kind = find_queue(variables);
            poll_.emplace([kind, &variables](auto const& ids) { return list_jobs(kind, ids, variables); },
                          [](std::string const& note) { fmt::print(stderr, "muster: {}\n", note); });
        } catch (error const&) {  // no scheduler here: the record of the run tells how it ended
        }
    }

    /// Asks the scheduler, where there is one.
    void ask() {
        asked_at_ = std::chrono::steady_clock::now();
        auto const answers = poll_ ? poll_->ask({id_}) : std::nullopt;
        if (!answers) return;
        bool const was_known = state_ == state::goes_on || state_ == state::ended;
        state_ = was_known ? state::ended : state::unknown;  // one that it has forgotten is over
        std::vector<std::string> begun;
        for (auto const& job : *answers) {
            if (!is_meant(job, id_)) continue;
            if (state_ == state::unknown) state_ = state::ended;
            if (job.phase != job_phase::ended) state_ = state::goes_on;
            // The row of tasks that have not begun has the number that its last task will have.
            if (job.phase != job_phase::waiting || job.id.find('[') == std::string::npos) begun.push_back(job.raw_id);
        }
        if (begun.empty()) begun = list_task_numbers(id_, record_);
        if (!begun.empty()) numbers_ = begun;
    }

    /// One of an array's tasks has a number of its own.
    bool needs_number() const {
        return id_.find('_') != std::string::npos || full_job_number(id_, record_).find("[]") != std::string::npos;
    }
    bool has_tasks() const { return numbers_.size() > 1; }

    std::vector<job_files> files() const {
        std::vector<job_files> all;
        for (auto const& number : numbers_) all.push_back(find_job_files(number, record_));
        return all;
    }
    void follow(log_tail& tail) const {
        for (auto const& number : numbers_) tail.follow(number, find_job_files(number, record_));
    }

    /// Throws errc::not_found for a job of which nobody knows anything.
    bool ended() {
        if (std::chrono::steady_clock::now() - asked_at_ >= ask_each) ask();
        if (state_ == state::goes_on) return false;
        if (state_ == state::ended) return true;
        auto const last = files().back();
        if (poll_ && state_ == state::not_told) return !last.run_folders.empty() && was_killed_here(last.run_folders.back(), id_);
        bool const is_unknown = state_ == state::unknown;
        if (is_unknown && !record_ && last.output.empty() && last.run_folders.empty())
            throw error(errc::not_found,
                        fmt::format("job {}: the scheduler does not know it (any more), and there is nothing of it in {}", id_,
                                    last.first_folder));
        return has_ended(last, id_) || is_unknown;  // a run that was killed has left no end in its record
    }

  private:
    enum class state { not_told, unknown, goes_on, ended };

    std::string id_;
    std::optional<job_record> record_;
    std::vector<std::string> numbers_;
    std::optional<job_poll> poll_;
    state state_ = state::not_told;
    std::chrono::steady_clock::time_point asked_at_{};
};

}  // namespace

tail_choice make_tail_choice(settings_result const& given) {
    return {given.integer("rank"), line_filter(given.text("grep"))};
}

int logs_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("logs", options_first("logs", args), real_settings(variables));
    if (print_help_if_asked("logs", given)) return 0;
    auto const ids = job_numbers(given.command, "logs");
    if (ids.size() != 1) throw error(errc::usage, "muster logs takes one job; muster watch follows several");
    auto const& id = ids.front();
    auto const record = find_job_record(id, variables);
    followed_job job(id, record, variables);
    bool const follow = given.flag("follow");
    if (follow || job.needs_number()) job.ask();
    auto all = job.files();
    auto const is_silent = [](job_files const& of) { return of.output.empty() && of.run_folders.empty(); };
    if (!follow && !job.needs_number() && std::all_of(all.begin(), all.end(), is_silent)) {  // an array, perhaps
        job.ask();
        all = job.files();
    }
    auto const& files = all.front();
    if (!follow && std::all_of(all.begin(), all.end(), is_silent))
        throw error(errc::not_found,
                    fmt::format("job {}: no output in {} (yet); {}", id, files.first_folder,
                                record ? "muster watch tells its state"
                                       : "muster has no record of it: go to the folder that it was submitted from"));
    bool const terminal = ::isatty(STDOUT_FILENO) == 1;
    log_tail tail(make_tail_choice(given), [&job, terminal](std::string const& number, int rank, std::string const& text) {
        auto const line = terminal ? without_controls(text) : text;  // the bytes as they were for a file or a program
        auto const who = rank < 0 ? std::string() : std::to_string(rank);
        if (job.has_tasks())
            fmt::print("[{}{}{}] {}\n", number, who.empty() ? "" : ":", who, line);
        else
            fmt::print("{}{}\n", who.empty() ? "" : fmt::format("[{}] ", who), line);
    });
    // What was written before the end was told is read behind it.
    while (follow && !job.ended()) {
        job.follow(tail);
        tail.look();
        std::fflush(stdout);
        pollfd changed{tail.event_fd(), POLLIN, 0};
        if (::poll(&changed, 1, look_ms) > 0) tail.clear();
    }
    job.follow(tail);
    tail.finish();
    return 0;
}

}  // namespace muster
