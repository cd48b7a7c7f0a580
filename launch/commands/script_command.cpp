#include "launch/commands/script_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/error.hpp"
#include "base/process/self_program.hpp"
#include "base/text.hpp"
#include "base/trust/trusted_file.hpp"
#include "base/version.hpp"
#include "jobscripts/render.hpp"
#include "launch/commands/real_settings.hpp"
#include "launch/help/help.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Schedulers read a bare number as minutes or as seconds, each its own way: so it is not taken.
std::optional<duration> walltime_of(settings_result const& given) {
    if (!given.given("time")) return std::nullopt;
    auto const text = given.text("time");
    if (parse_real(trim(text)))
        throw error(errc::usage, fmt::format("--time: '{}' has no unit; write {}min, {}h or HH:MM:SS", text, text, text));
    try {
        return parse_duration(text, "--time");
    } catch (parse_error const& e) {
        throw error(errc::usage, e.what());
    }
}

std::string read_template(std::string const& path) {
    auto text = read_small_file(path, "template");
    if (!text) throw error(errc::usage, fmt::format("cannot open the template {}; check the name and that it is readable", path));
    return *text;
}

}  // namespace

script_options parse_script_options(std::vector<std::string> const& args, settings_sources const& sources) {
    auto const given = resolve_settings("script", args, sources);
    script_options options;
    options.help = given.flag("help");
    if (options.help) return options;
    print_notes(given);

    options.site = given.text("site");
    if (options.site.empty())
        throw error(errc::usage, "--site is missing; give the name of a site, such as generic-slurm, or a site file");
    auto const gpus = given.integer("gpus");
    if (!gpus) throw error(errc::usage, "--gpus is missing; give the number of GPUs, which is the number of ranks");
    options.gpus = *gpus;
    options.walltime = walltime_of(given);
    options.account = given.text("account");
    options.queue = given.text("queue");
    options.job_name = given.text("job-name");
    options.gpus_per_node = given.integer("gpus-per-node");
    options.cpus_per_gpu = given.integer("cpus-per-gpu");
    options.constraint = given.text("constraint");
    options.filesystems = given.text("filesystems");
    options.network_environment = given.flag("network-env");
    options.check_limits = given.flag("limits");
    options.muster = given.text("muster");
    options.template_file = given.text("template");
    options.command = given.command;
    if (options.command.empty())
        throw error(errc::usage, "the program is missing; give it after --, as in: muster script … -- python3 train.py");
    return options;
}

int script_command(std::vector<std::string> const& args, environment const& env) {
    auto options = parse_script_options(args, real_settings(env));
    if (options.help) {
        fmt::print("{}", help_text("script", false));
        return 0;
    }
    if (options.muster.empty()) options.muster = self_program().string();
    auto const where = load_site(options.site, site_search_path(env));
    // A file is found from the job's working directory too.
    if (options.site != where.name) options.site = std::filesystem::absolute(options.site);
    auto const plan = plan_script(where, options);
    auto const script = options.template_file.empty()
                            ? render(plan.request)
                            : render(plan.request, read_template(options.template_file), options.template_file);
    for (auto const& note : plan.notes) fmt::print(stderr, "muster: note: {}\n", note);
    if (std::fwrite(script.data(), 1, script.size(), stdout) != script.size() || std::fflush(stdout) != 0)
        throw_system("write", "standard output");
    return 0;
}

}  // namespace muster
