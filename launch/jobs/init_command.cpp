// `muster init` makes a folder to start from, with a job file, a training script and a job script.
#include <fmt/format.h>

#include <filesystem>

#include "base/command/print_note.hpp"
#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_output.hpp"
#include "launch/jobs/starter_files.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/scripts/script_command.hpp"
#include "launch/settings/settings_file.hpp"
#include "launch/site_tools/cluster_facts.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Returns false, and changes nothing, if a file of that name exists.
bool write_new(fs::path const& path, std::string_view text) {
    auto const file = open_output_file(path.string(), {}, if_there::refused);
    if (!file) return false;
    write_all(file.get(), text, path.string());
    return true;
}

std::string likely_site(settings_result const& given, environment const& variables) {
    if (given.given("site")) return given.text("site");
    bool const slurm = !find_program_or_nothing(slurm_program(slurm_ask::submit), variables).empty();
    bool const pbs = !find_program_or_nothing("qsub", variables).empty();
    bool const flux = !find_program_or_nothing("flux", variables).empty();
    if (flux && (prefers_flux(variables) || (!slurm && !pbs))) return "generic-flux";
    if (!slurm && !pbs) return "workstation";
    return pbs && (!slurm || prefers_pbs(variables)) ? "generic-pbs" : "generic-slurm";
}

bool may_have_gpus(std::string const& name, environment const& variables) {
    try {
        return may_have_gpus(load_site(name, site_search_path(variables)), variables);
    } catch (error const&) {  // the site does not exist: making its script reports that
        return true;
    }
}

/// Returns muster.toml, or another name if that file holds only settings, which stay as they are.
std::string job_file_of(fs::path const& folder) {
    constexpr char const* usual = "muster.toml";
    try {
        auto const text = read_small_file((folder / usual).string(), "settings file");
        return !text || parse_job_file(*text, usual, false) ? usual : "job.toml";
    } catch (error const&) {  // whatever reads it reports its faults
        return usual;
    }
}

/// Returns a script of the same job for those who run sbatch or qsub themselves; empty, with a note, if the site needs more than
/// the starter's job says (an account, a queue).
std::string starter_job_script(std::string const& site, bool with_gpus, environment const& variables) {
    try {
        auto options = parse_script_options(starter_script_words(site, with_gpus), settings_sources{});
        auto const plan = plan_job(options, variables);
        return render_script(plan.request, options.template_file);
    } catch (error const& why) {
        print_note("job.sh is not written: {}; once muster.toml is complete, muster submit writes a script", why.what());
        return {};
    }
}

}  // namespace

int init_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("init", options_first("init", args), real_settings(variables));
    if (print_help_if_asked("init", given)) return 0;
    if (given.command.size() > 1) throw error(errc::usage, "muster init takes one folder, or none for this one");
    fs::path const folder = given.command.empty() ? "." : given.command.front();
    std::error_code fault;
    fs::create_directories(folder, fault);
    if (fault) throw_error(errc::io, "cannot make {}: {}; give another folder", folder.string(), fault.message());
    auto const site = likely_site(given, variables);
    bool const with_gpus = may_have_gpus(site, variables);
    auto const job_script = starter_job_script(site, with_gpus, variables);
    auto const job_file = job_file_of(folder);
    for (auto const& [name, text] : {std::pair<char const*, std::string>{job_file.c_str(), starter_job_file(site, with_gpus)},
                                     std::pair<char const*, std::string>{"train.py", std::string(starter_script())},
                                     std::pair<char const*, std::string>{"resume.py", std::string(resuming_script())},
                                     std::pair<char const*, std::string>{"job.sh", job_script}})
        if (!text.empty())
            fmt::print("{:9} {}\n", write_new(folder / name, text) ? "wrote" : "left",
                       (folder / name).lexically_normal().string());
    auto const submit = job_file == "muster.toml" ? std::string("muster submit") : "muster submit --file " + job_file;
    fmt::print("\nnext:\n");
    if (folder != ".") fmt::print("  cd {}\n", shell_quote(folder.string()));
    fmt::print("  muster run -n 2 -- python3 train.py      on this machine; resume.py trains over several jobs\n");
    if (site != "workstation")
        fmt::print(
            "  {:40} print what would be submitted; {} says what\n"
            "  {:40} submit it{}\n"
            "  muster watch ID                          follow it to its end\n",
            submit + " --dry-run", job_file, submit,
            job_script.empty() ? "" : "; job.sh is for those who submit by sbatch or qsub");
    return 0;
}

}  // namespace muster
