// `muster alloc` gets nodes for a shell; its options are those of `muster script`.
#include <fmt/format.h>

#include <filesystem>

#include "base/command/print_note.hpp"
#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_plan.hpp"
#include "launch/jobs/script_directives.hpp"
#include "launch/jobs/submission_variables.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"

namespace muster {

namespace {

/// Returns the value of qsub's -v: qsub passes on no variable that is not in this list. A value with a comma stands in quotes.
std::string variable_list(environment const& shell) {
    std::vector<std::string> list;
    for (auto const* name : {"PATH", "MUSTER_OUTPUT_DIR", "MUSTER_SITE"}) {
        auto const value = shell.get_or(name, "");
        if (value.find_first_of("'\"\\\n") != std::string::npos) continue;
        auto const* const quote = value.find(',') == std::string::npos ? "" : "'";
        list.push_back(fmt::format("{}={}{}{}", name, quote, value, quote));
    }
    return join(list, ",");
}

std::vector<std::string> alloc_words(job_plan const& plan, environment const& shell) {
    std::vector<std::string> words;
    auto const kind = plan.request.kind;
    if (kind == script_kind::slurm)
        words = slurm_words(slurm_ask::allocate);
    else if (kind == script_kind::flux)
        words = {"flux", "alloc"};
    else
        words = {"qsub", "-I"};
    auto const asked = script_directives(plan.script, kind == script_kind::slurm  ? "#SBATCH "
                                                      : kind == script_kind::flux ? "#FLUX: "
                                                                                  : "#PBS ");
    words.insert(words.end(), asked.begin(), asked.end());
    if (plan.request.kind == script_kind::pbs) words.insert(words.end(), {"-v", variable_list(shell)});
    words.insert(words.end(), plan.request.command.begin(), plan.request.command.end());
    return words;
}

/// Returns the variables with which `muster run` in the shell is this muster, at the same site.
environment shell_variables(environment variables, job_plan const& plan, std::string const& site) {
    variables.set("PATH", fmt::format("{}:{}", self_program().parent_path().string(), variables.get_or("PATH", "/usr/bin:/bin")));
    variables.set("MUSTER_OUTPUT_DIR", plan.run_folder);
    variables.set("MUSTER_SITE", site);
    return variables;
}

}  // namespace

int alloc_command(std::vector<std::string> const& args, environment const& variables) {
    auto given = resolve_settings("alloc", args, real_settings(variables));
    if (print_help_if_asked("alloc", given)) return 0;
    print_notes(given);
    // A job file's command is what a batch job would run, but these nodes are for a shell.
    auto const program = given.command_from_file ? std::vector<std::string>() : given.command;
    // The script is read only for its directives, so any program will do.
    if (given.given("each")) throw error(errc::usage, "--each is for submit and script: an allocation is one job; leave it out");
    given.command = {"true"};
    auto plan = plan_submission(given, variables);
    plan.request.command = program;
    if (plan.request.kind == script_kind::pbs && !program.empty())
        throw error(errc::usage, "qsub -I takes no program; leave it out, and start it in the shell");
    auto site = given.text("site");
    if (site.find('/') != std::string::npos) site = std::filesystem::absolute(site).string();
    auto const shell = shell_variables(submission_variables(variables), plan, site);
    auto const words = alloc_words(plan, shell);
    fmt::print(stderr, "muster: {}\n", describe(plan.request));
    for (auto const& note : plan.notes) print_note(note);
    if (!plan.request.modules.empty() || !plan.request.setup.empty())
        print_note("a job script of {} would load modules or run lines first: muster script shows them", plan.site);
    if (given.flag("dry-run")) {
        fmt::print("{}\n", shell_join(words));
        return 0;
    }
    refuse_missing(words.front(), plan.site, variables);
    if (plan.request.kind == script_kind::pbs)
        fmt::print(stderr, "muster: note: PBS starts the shell in your home directory: cd \"$PBS_O_WORKDIR\"; muster is {}\n",
                   self_program().string());
    replace_program(find_program(words.front(), variables, ""), words, shell);
}

}  // namespace muster
