// `muster logs` shows what a job's script and its ranks have written.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <utility>

#include "base/command/print_note.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/logs/log_tail.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/job_poll.hpp"

namespace muster {

namespace {

constexpr int look_ms = 2000;                       ///< between two looks at files of other machines, for which no event comes
constexpr auto ask_each = std::chrono::seconds(5);  ///< between two questions to the scheduler

bool was_killed(job_files const& files) {
    return !files.run_folders.empty() && find_gone_process(files.run_folders.back());
}

/// Holds what the scheduler says about the job whose logs are read: whether it goes on, and the numbers of its files.
class followed_job {
  public:
    followed_job(std::string id, std::optional<job_record> record, environment const& variables)
        : id_(std::move(id)),
          record_(std::move(record)),
          parts_{{id_, id_}},
          finder_(find_queue_or_nothing(variables), variables) {
        if (auto const kind = find_queue_or_nothing(variables))
            poll_.emplace([kind = *kind, &variables](auto const& ids) { return list_jobs(kind, ids, variables); },
                          [](std::string const& note) { fmt::print(stderr, "muster: {}\n", note); });
    }

    /// Asks the scheduler, if there is one.
    void ask() {
        asked_at_ = std::chrono::steady_clock::now();
        auto const answers = poll_ ? poll_->ask({id_}) : std::nullopt;
        if (!answers) return;
        bool const was_known = state_ == state::goes_on || state_ == state::ended;
        state_ = was_known ? state::ended : state::unknown;  // the job is over if the scheduler has forgotten it
        auto const went = std::exchange(going_, {});
        waiting_.clear();
        for (auto const& job : *answers) {
            if (!is_meant(job, id_)) continue;
            if (job.phase == job_phase::waiting) waiting_.insert(job.id);
            if (state_ == state::unknown) state_ = state::ended;
            if (job.phase != job_phase::ended) state_ = state::goes_on, going_.insert(job.id);
            failure_ = finder_.explain_failure(job);
        }
        for (auto const& part : parts_)
            if (went.contains(part.shown) && !going_.contains(part.shown)) finder_.note_end(part.shown);
        if (auto begun = list_parts(*answers, id_, record_); !begun.empty()) parts_ = std::move(begun);
    }

    /// Returns whether the scheduler says that the job goes on.
    bool goes_on(job_number const& part) const { return going_.contains(part.shown); }
    /// Returns why it could not start; empty: it could.
    std::string const& failure() const { return failure_; }
    /// Returns whether the scheduler, when asked, did not know the job, and muster has no record of it.
    bool is_unknown() const { return state_ == state::unknown && !record_; }
    bool has_tasks() const { return parts_.size() > 1; }
    std::vector<job_number> const& parts() const { return parts_; }

    std::vector<job_files> files() {
        std::vector<job_files> all;
        for (auto const& part : parts_) all.push_back(finder_.find(part, record_));
        return all;
    }
    void follow(log_tail& tail) {
        for (auto const& part : parts_)
            if (!waiting_.contains(part.shown)) tail.follow(part.shown, finder_.find(part, record_));
    }

    /// Throws errc::not_found for a job that neither the scheduler nor any file knows.
    bool ended() {
        if (std::chrono::steady_clock::now() - asked_at_ >= ask_each) ask();
        if (state_ == state::goes_on) return false;
        if (state_ == state::ended) return true;
        auto const last = files().back();
        if (poll_ && state_ == state::not_told) return was_killed(last);
        bool const is_unknown = state_ == state::unknown;
        if (is_unknown && !record_ && last.output.empty() && last.run_folders.empty())
            throw_error(errc::not_found, "job {}: the scheduler does not know it (any more), and there is nothing of it in {}",
                        id_, last.first_folder);
        return last_run_exit(last) || was_killed(last) || is_unknown;  // a killed run has left no end in its record
    }

  private:
    enum class state { not_told, unknown, goes_on, ended };

    std::string id_;
    std::optional<job_record> record_;
    std::vector<job_number> parts_;  ///< the job, or the tasks of an array in order
    std::string failure_;
    std::set<std::string> going_;    ///< the parts that go on
    std::set<std::string> waiting_;  ///< the parts that have not begun: what lies in their files is another job's
    job_file_finder finder_;
    std::optional<job_poll> poll_;
    state state_ = state::not_told;
    std::chrono::steady_clock::time_point asked_at_{};
};

}  // namespace

tail_choice make_tail_choice(settings_result const& given) {
    return {given.integer("rank"), line_filter(given.text("grep"))};
}

namespace {

/// Prints the logs of a run given by its folder, of any job or none. With --follow it goes on until the run has recorded its end,
/// or was killed on this host.
int print_run_logs(settings_result const& given) {
    auto const& word = given.command.front();
    bool const terminal = ::isatty(STDOUT_FILENO) == 1;
    auto const folder = files_of_run(word).first_folder;
    log_tail tail(make_tail_choice(given), [&](std::string const&, std::string const& who, std::string const& text) {
        fmt::print("[{}] {}\n", who, terminal ? without_controls(text) : text);
    });
    std::optional<std::string> gone;
    for (bool over = !given.flag("follow"); !over;) {
        gone = find_gone_process(folder);  // comes before the search for its end, which it may have just written
        over = gone || read_run_end(folder).has_value();
        tail.follow({}, files_of_run(word));
        tail.look();
        std::fflush(stdout);
        pollfd changed{tail.event_fd(), POLLIN, 0};
        if (!over && ::poll(&changed, 1, look_ms) > 0) tail.clear();
    }
    tail.follow({}, files_of_run(word));
    tail.finish();
    if (gone && !read_run_end(folder)) print_note("the run was killed: {} is gone, which led it, and run.json has no end", *gone);
    if (auto const why = tail.why_no_rank(); !why.empty()) throw_error(errc::not_found, "{}: {}", without_controls(word), why);
    return 0;
}

}  // namespace

int logs_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("logs", options_first("logs", args), real_settings(variables));
    if (print_help_if_asked("logs", given)) return 0;
    if (given.command.size() == 1 && is_run_folder(given.command.front())) return print_run_logs(given);
    auto const ids = job_numbers(given.command, "logs", variables);
    if (ids.size() != 1) throw error(errc::usage, "muster logs takes one job; muster watch follows several");
    auto const& id = ids.front();
    auto const record = find_job_record(id, given, variables);
    followed_job job(id, record, variables);
    bool const follow = given.flag("follow");
    job.ask();
    auto const all = job.files();
    auto const is_silent = [](job_files const& of) { return of.output.empty() && of.errors.empty() && of.run_folders.empty(); };
    auto const& files = all.front();
    bool const is_nothing = !follow && std::ranges::all_of(all, is_silent);
    if (is_nothing && !job.failure().empty()) throw_error(errc::not_found, "job {}: {}", id, job.failure());
    for (auto const& of : all)
        for (auto const& file : of.shared)
            if (is_nothing && !file.why.empty()) throw_error(errc::not_found, "job {}: {}", id, file.why);
    if (is_nothing)
        throw_error(
            errc::not_found, "job {}: {}no output in {}{}{}{}{}", id,
            job.is_unknown() ? "the scheduler does not know it (any more), and there is " : "", files.first_folder,
            job.is_unknown() ? "" : " (yet)", record ? "" : ", no run of it in another folder here or one below",
            record && !record->scheduler.empty()
                ? "; muster watch tells its state"
                : fmt::format("{}; go to the folder that it was submitted from, or give the --output-dir of its muster run",
                              job.is_unknown() ? "" : ", and the scheduler names no file of it that is there"),
            where_recorded(id, variables));
    bool const terminal = ::isatty(STDOUT_FILENO) == 1;
    auto const print = [&job, terminal](std::string const& number, std::string const& who, std::string const& text) {
        auto const line = terminal ? without_controls(text) : text;  // a file or a program gets the bytes unchanged
        if (job.has_tasks())
            fmt::print("[{}{}{}] {}\n", number, who.empty() ? "" : ":", who, line);
        else
            fmt::print("{}{}\n", who.empty() ? "" : fmt::format("[{}] ", who), line);
    };
    auto const refuse_missing_rank = [&](std::string const& why) {
        if (!why.empty()) throw_error(errc::not_found, "job {}: {}", id, why);
    };
    auto const note_script = [](log_tail const& tail) {
        if (auto const why = tail.why_no_script(); !why.empty()) print_note(why);
        for (auto const& why : tail.other_jobs()) print_note(why);
    };
    if (!follow) {  // shows the tasks of an array one after the other
        std::string why;
        bool found = false;
        for (std::size_t i = 0; i < all.size(); ++i) {
            log_tail tail(make_tail_choice(given), print);
            tail.follow(job.parts()[i].shown, all[i]);
            tail.finish(!job.goes_on(job.parts()[i]));
            note_script(tail);
            why = tail.why_no_rank();
            found = found || why.empty();
        }
        if (!found) refuse_missing_rank(why);
        return 0;
    }
    log_tail tail(make_tail_choice(given), print);
    // Reads once more when the end is known, because lines may have been written just before it.
    while (!job.ended()) {
        job.follow(tail);
        tail.look();
        std::fflush(stdout);
        pollfd changed{tail.event_fd(), POLLIN, 0};
        if (::poll(&changed, 1, look_ms) > 0) tail.clear();
    }
    job.follow(tail);
    tail.finish();
    note_script(tail);
    refuse_missing_rank(tail.why_no_rank());
    return 0;
}

}  // namespace muster
