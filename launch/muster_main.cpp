// The program `muster`: the functions of its commands, and how it becomes muster-NAME for commands that are separate programs.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/process/network.hpp"
#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/engine/outer_task.hpp"
#include "launch/help/help.hpp"
#include "launch/remote/flux_remote.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/remote/pbs_remote.hpp"
#include "launch/settings/parts.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace {

using namespace muster;

constexpr command_function core_commands[]{
    {"run", [](auto& args, auto& variables) { return run_command(args, variables, functions_of_parts()); }},
    {"doctor", [](auto& args, auto& variables) { return doctor_command(args, variables, functions_of_parts()); }},
    {"plan", plan_command},
    {"hosts", hosts_command},
    {"config", config_command},
    {"trace", trace_command},
    {"completion", completion_command},
    {"manual", manual_command},
    {"shim", shim_command},
    {"remote", remote_command},
    {"agent", agent_command},
    {"tmrsh", tmrsh_command},
    {"fluxrsh", fluxrsh_command},
};

/// Descriptors 0 to 2 must be open, or the first pipe would accidentally become a rank's standard output. A closed one stays
/// unwritable, so that lost output is an error; loss on a closed standard error cannot be reported.
void open_standard_descriptors() {
    for (;;) {
        int const fd = ::open("/dev/null", O_RDONLY);
        if (fd < 0) return;
        if (fd == STDERR_FILENO) {
            ::close(fd);
            ::open("/dev/null", O_WRONLY);
        } else if (fd > STDERR_FILENO) {
            ::close(fd);
            return;
        }
    }
}

/// Returns the path of muster-NAME in the folder of this program.
std::filesystem::path program_of(std::string_view name) {
    return self_program().parent_path() / fmt::format("muster-{}", name);
}

/// Becomes muster-NAME in the folder of this program; returns only if it does not exist.
void exec_sibling(std::string_view name, std::vector<std::string> const& args) {
    auto const path = program_of(name);
    if (::access(path.c_str(), X_OK) != 0) return;
    std::vector<std::string> words{path.string()};
    words.insert(words.end(), args.begin(), args.end());
    replace_program(path.string(), words, environment::capture());
}

/// Returns whether help lists the command: one that is a program is there if its program is.
bool is_there(command_row const& row) {
    return !row.is_program || ::access(program_of(row.name).c_str(), X_OK) == 0;
}

[[noreturn]] int run_sibling(command_row const& row, std::vector<std::string> const& args) {
    exec_sibling(row.name, args);
    throw error(errc::unavailable, absent_command(row));
}

/// Refuses a command of muster's that this installation lacks: its part, or its program, was left out.
void refuse_absent(command_set const& set, std::vector<std::string> const& words) {
    auto const asked = words.size() == 2 && words.front() == "help" ? words.back() : words.empty() ? "" : words.front();
    for (auto const& row : commands_of_all_parts())
        if (row.name == asked && !set.has(asked)) throw error(errc::unavailable, absent_command(row));
}

/// Returns which command does what one of this name does elsewhere; empty: none does.
std::string_view named_otherwise(std::string_view word) {
    constexpr std::string_view names[]{"status", "ps", "queue", "list", "ls", "history", "job"};
    if (std::find(std::begin(names), std::end(names), word) != std::end(names))
        return "muster jobs lists your jobs, with --all also those that have ended, and muster show ID tells of one";
    if (word == "sweep" || word == "grid")
        return "muster submit --each NAME=V,V… submits a job for each value, and muster show ID compares them";
    return {};
}

/// Applies MUSTER_PORTS in processes that muster run starts, on any node; the commands that take settings report faults.
void take_port_range(environment const& variables) {
    auto const text = variables.get_or("MUSTER_PORTS", "");
    if (!text.empty() && !check_ports(text)) use_ports(parse_port_range(text, "MUSTER_PORTS"));
}

void add_commands(command_set& set, environment const& variables) {
    auto functions = functions_of_parts().commands;
    functions.insert(functions.end(), std::begin(core_commands), std::end(core_commands));
    for (auto const& row : commands()) {
        if (!is_there(row)) continue;
        auto const function = std::ranges::find(functions, row.name, &command_function::name);
        auto const run = function == functions.end() ? nullptr : function->run;
        set.add_unread(row, [run, &row, &variables](std::vector<std::string> const& args) {
            return run != nullptr ? run(args, variables) : run_sibling(row, args);
        });
    }
}

}  // namespace

int main(int argc, char** argv) {
    return run_main("muster", [&] {
        open_standard_descriptors();
        auto const inherited = with_present_slurm_names(environment::capture());
        auto const step = slurm_step_of(inherited);
        auto const variables = without_submitters_task(inherited, step, job_script_variables(inherited, step));
        init_log(variables.get_or("MUSTER_LOG", "warning"));
        end_phase("libraries loaded");
        take_port_range(variables);
        command_set set({.name = "muster",
                         .summary = "one rank per GPU",
                         .example = "muster run -- python3 train.py",
                         .version = version_text,
                         .width = help_width(variables)});
        add_commands(set, variables);
        std::vector<std::string> const words(argv + 1, argv + argc);
        // Programs with the name muster-NAME are commands, too.
        if (!words.empty() && !set.has(words.front()) && words.front().find_first_of("/-") == std::string::npos)
            exec_sibling(words.front(), {words.begin() + 1, words.end()});
        refuse_absent(set, words);
        if (auto const advice = named_otherwise(words.empty() ? "" : words.front()); !advice.empty() && !set.has(words.front()))
            throw_error(errc::usage, "no command '{}'; {}", words.front(), advice);
        return set.run(words);
    });
}
