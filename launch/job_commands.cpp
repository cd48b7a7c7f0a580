#include "launch/jobs/job_commands.hpp"

#include "launch/scripts/script_command.hpp"
#include "launch/site_tools/site_command.hpp"

namespace muster {

void add_jobs(part_functions& to) {
    static constexpr command_function rows[]{
        {"script", script_command}, {"submit", submit_command}, {"alloc", alloc_command}, {"jobs", jobs_command},
        {"watch", watch_command},   {"logs", logs_command},     {"show", show_command},   {"cancel", cancel_command},
        {"rerun", rerun_command},   {"top", top_command},   {"init", init_command},     {"site", site_command},
    };
    to.commands.insert(to.commands.end(), std::begin(rows), std::end(rows));
}

}  // namespace muster
