#include "launch/jobs/job_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scripts/script_command.hpp"

namespace muster {

namespace {

/// Returns the folder's output pattern, in whose name Slurm replaces %j and the like.
std::string slurm_pattern(std::string const& folder) {
    std::string pattern;
    for (char const c : folder) pattern += c == '%' ? std::string("%%") : std::string(1, c);
    return pattern + "/%j.out";
}

/// Flux reads -o as an option of its shell.
bool names_output(script_request const& request) {
    return std::ranges::any_of(request.directives, [&](auto const& d) {
        return (d.starts_with("-o") && request.kind != script_kind::flux) || d.starts_with("--output");
    });
}

/// Returns whether Flux can write the output there: it replaces {{id}} and the like in a file's name, and has no escape for two
/// braces.
bool keeps_flux_output(job_plan const& plan) {
    return plan.request.kind == script_kind::flux && !names_output(plan.request) &&
           plan.files_folder.find("{{") == std::string::npos;
}

/// Returns whether PBS can write the output there: it names the file ID.OU in a folder that ends in a slash, and takes only these
/// characters in a path.
bool keeps_pbs_output(job_plan const& plan) {
    auto const& said = plan.request.directives;
    auto const is_own = [](auto const& d) { return d.starts_with("-o") || d.starts_with("-e") || d.starts_with("-j"); };
    return plan.request.kind == script_kind::pbs && std::ranges::none_of(said, is_own) &&
           std::ranges::all_of(plan.files_folder, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::vector<std::string> submit_words(job_plan const& plan) {
    if (plan.request.kind == script_kind::slurm) {
        auto words = slurm_words(slurm_ask::submit);
        if (!names_output(plan.request)) words.push_back("--output=" + slurm_pattern(plan.files_folder));
        if (plan.hold) words.emplace_back("--hold");
        return words;
    }
    if (plan.request.kind == script_kind::flux) {
        std::vector<std::string> words{"flux", "batch"};
        if (keeps_flux_output(plan)) words.push_back(fmt::format("--output={}/{{{{id.f58plain}}}}.out", plan.files_folder));
        if (plan.hold) words.emplace_back("--urgency=0");
        return words;
    }
    std::vector<std::string> words{"qsub"};
    if (keeps_pbs_output(plan)) words.insert(words.end(), {"-j", "oe", "-o", plan.files_folder + "/"});
    if (plan.hold) words.emplace_back("-h");
    return words;
}

void refuse_unscheduled(std::string const& site, script_kind kind) {
    if (kind == script_kind::local)
        throw_error(errc::unavailable,
                    "{} has no scheduler to submit to; start the program by muster run (a scaling study: without --submit)",
                    site);
    if (kind == script_kind::cobalt)
        throw_error(errc::unavailable,
                    "{} has Cobalt, to which muster cannot submit; print the script by muster script, and give it to qsub", site);
}

/// Two clusters number their jobs alike: the first that uses this folder gets muster-runs, and each other one
/// muster-runs/CLUSTER.
std::string files_folder_of(job_plan const& plan) {
    auto const folder = fmt::format("{}/{}", plan.working_dir, runs_folder);
    auto const first = std::string(trim(read_text_file(fmt::format("{}/{}", folder, cluster_file))));
    bool const is_own = plan.cluster.empty() || first.empty() || first == plan.cluster;
    return is_own || plan.cluster.find('/') != std::string::npos ? folder : fmt::format("{}/{}", folder, plan.cluster);
}

}  // namespace

std::string job_plan::output_of(std::string const& id) const {
    if (keeps_pbs_output(*this)) return fmt::format("{}/{}.OU", files_folder, id);
    if (request.kind == script_kind::flux ? !keeps_flux_output(*this)
                                          : request.kind != script_kind::slurm || names_output(request))
        return {};
    return fmt::format("{}/{}.out", files_folder, id);
}

void refuse_missing(std::string const& program, std::string const& site, environment const& variables) {
    if (find_program_or_nothing(program, variables).empty())
        throw_error(errc::unavailable,
                    "{} is not on PATH, and jobs of {} are submitted by it; do this on a login node of that cluster", program,
                    site);
}

std::string describe(script_request const& request) {
    auto text = fmt::format("{}, {} on each, {}", counted(request.nodes, "node"), counted(request.ranks_per_node, "rank"),
                            format_walltime(request.walltime));
    if (!request.with_gpus) text += ", no GPUs";
    if (request.spare_nodes > 0) text += fmt::format(", {} more for spares", nodes_text(request.spare_nodes));
    if (request.spare_places > 0) text += fmt::format(", room for {} more", request.spare_places);
    if (!request.queue.empty()) text += fmt::format(", queue {}", request.queue);
    if (!request.account.empty()) text += fmt::format(", account {}", request.account);
    return text;
}

job_plan plan_submission(settings_result const& given, environment const& variables) {
    auto options = make_script_options(given);
    for (auto& id : options.after) id = plain_job_number(id, variables);
    auto planned = plan_job(options, variables);
    job_plan plan;
    plan.site = given.text("site");
    refuse_unscheduled(plan.site, planned.request.kind);
    plan.request = std::move(planned.request);
    plan.notes = std::move(planned.notes);
    plan.hold = given.flag("hold");
    plan.working_dir = std::filesystem::current_path().string();
    if (plan.request.kind == script_kind::slurm) plan.cluster = find_cluster(variables);
    plan.files_folder = files_folder_of(plan);
    auto const folder = given.text("output-dir");
    plan.run_folder = folder.empty() ? plan.files_folder + "/%j" : absolute_path(folder);
    // This is an option rather than a variable, because the runs that prepare the nodes leave no folders.
    refuse_common_folder(plan.request, plan.run_folder);
    hand_to_runs(plan.request, {"--output-dir", plan.run_folder});
    check_each_words(plan.request, options);
    if (!plan.request.command.empty()) plan.script = render_script(plan.request, options.template_file);
    plan.submit = submit_words(plan);
    return plan;
}

}  // namespace muster
