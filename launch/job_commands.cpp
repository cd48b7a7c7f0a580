// The functions of the part jobs, by the names of their commands.
#include "launch/jobs/job_commands.hpp"
#include "launch/scripts/script_command.hpp"
#include "launch/site_tools/site_command.hpp"

namespace muster {

namespace {

constexpr command_function rows[]{
    {"script", script_command}, {"submit", submit_command}, {"alloc", alloc_command}, {"jobs", jobs_command},
    {"watch", watch_command},   {"logs", logs_command},     {"show", show_command},   {"cancel", cancel_command},
    {"rerun", rerun_command},   {"init", init_command},     {"site", site_command},
};

}  // namespace

std::span<command_function const> job_commands() noexcept {
    return rows;
}

}  // namespace muster
