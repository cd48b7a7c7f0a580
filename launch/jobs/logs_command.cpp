// `muster logs`: what the ranks of a job have written.
#include <fmt/format.h>
#include <poll.h>

#include <cstdio>

#include "base/error.hpp"
#include "launch/commands/real_settings.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/logs/log_tail.hpp"

namespace muster {

namespace {

constexpr int look_ms = 2000;  ///< at files of other machines, of which no event tells

bool has_ended(job_files const& files) {
    return !files.run_folders.empty() && read_run_exit(files.run_folders.back()).has_value();
}

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
    auto files = find_job_files(id, record);
    bool const follow = given.flag("follow");
    if (!follow && files.output.empty() && files.run_folders.empty())
        throw error(errc::not_found,
                    fmt::format("job {}: no output in {} (yet); {}", id, files.first_folder,
                                record ? "muster watch tells its state"
                                       : "muster has no record of it: go to the folder that it was submitted from"));
    log_tail tail(make_tail_choice(given), [](std::string const&, int rank, std::string const& line) {
        if (rank >= 0)
            fmt::print("[{}] {}\n", rank, line);
        else
            fmt::print("{}\n", line);
    });
    tail.follow(id, files);
    while (follow && !has_ended(files)) {
        tail.look();
        std::fflush(stdout);
        pollfd changed{tail.event_fd(), POLLIN, 0};
        if (::poll(&changed, 1, look_ms) > 0) tail.clear();
        files = find_job_files(id, record);
        tail.follow(id, files);
    }
    tail.finish();
    return 0;
}

}  // namespace muster
