#include "launch/run/prepare_run.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>

#include "base/error.hpp"
#include "base/process/this_process.hpp"
#include "launch/ranks/exports.hpp"
#include "launch/system/absolute_path.hpp"

namespace muster {

void print_note(std::string const& text) {
    auto const before = ::signal(SIGPIPE, SIG_IGN);
    std::fputs(fmt::format("muster: note: {}\n", text).c_str(), stderr);
    ::signal(SIGPIPE, before);
}

run_preparation prepare_run(run_context const& run) {
    auto const& options = run.options;
    int const size = run.map.world_size();
    if (options.print_env && *options.print_env >= size)
        throw error(errc::usage,
                    fmt::format("--print-env {}: there is no such rank; give one from 0 to {}", *options.print_env, size - 1));
    if (!run.map.note.empty() && !options.quiet) print_note(run.map.note);
    return {variables_for_ranks(run.inherited, options.exports),
            options.working_dir.empty() ? "" : absolute_path(options.working_dir),
            find_python_folders(self_program(), options.python_path, options.as_horovod)};
}

}  // namespace muster
