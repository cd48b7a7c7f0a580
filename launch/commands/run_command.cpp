#include "base/command/print_note.hpp"
#include "launch/commands/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "base/command/command_set.hpp"
#include "base/error.hpp"
#include "base/process/network.hpp"
#include "base/process/process.hpp"
#include "base/process/this_process.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/engine/outer_task.hpp"
#include "launch/help/help.hpp"
#include "launch/run/guardian.hpp"
#include "launch/run/prepare_run.hpp"
#include "launch/run/run_job.hpp"
#include "launch/settings/settings_to_options.hpp"
#include "launch/site/site_placement.hpp"
#include "launch/system/home_folder.hpp"
#include "launch/system/session_dir.hpp"

namespace muster {

std::optional<run_options> parse_run_options(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("run", args, real_settings(variables));
    if (print_help_if_asked("run", given)) return std::nullopt;
    print_notes(given);
    auto options = make_run_options(given);
    options.asked = given.values;
    options.place = with_site(std::move(options.place), given.text("site"), variables);
    options.from = choice_with_site(std::move(options.from), given.text("site"), variables);
    return options;
}

int run_command(std::vector<std::string> const& args, environment const& inherited, part_functions const& parts) {
    auto variables = inherited;
    bool const had_no_home = provide_home(variables);
    auto const options = parse_run_options(args, variables);
    if (!options) return 0;
    if (had_no_home && !options->quiet)
        print_note("HOME is not set, and user {} has no entry in passwd: it is / for this run, since MPI and PMIx need one",
                   ::geteuid());
    if (!options->ports.empty()) {
        use_ports(parse_port_range(options->ports, "--ports"));
        variables.set("MUSTER_PORTS", options->ports);  // shims, keepers, probes and ranks read it
    }
    end_phase("settings read");
    if (!options->nested && !options->dry_run && !options->print_env) refuse_outer_task(variables);
    auto const kept = options->keep_state ? parts.keep_states() : nullptr;
    auto const launch = [&](launcher_start const& start) {
        try {
            return run_job(*options, variables, start, parts);
        } catch (program_error const& e) {
            print_error("muster", e.what());
            return e.exit_status();
        } catch (error const& e) {
            print_error("muster", e.what());
            return exit_code(e.code());
        } catch (std::exception const& e) {
            print_error("muster", e.what());
            return exit_code(errc::internal);
        }
    };
    return run_guarded(options->grace, session_places(variables), launch, kept.get(), options->timeout);
}

}  // namespace muster
