#include "launch/scripts/script_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/command/print_note.hpp"
#include "base/process/this_process.hpp"
#include "base/throw_error.hpp"
#include "base/trust/trusted_file.hpp"
#include "jobscripts/render.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/site_tools/cluster_facts.hpp"

namespace muster {

namespace {

std::string read_template(std::string const& path) {
    auto text = read_small_file(path, "template");
    if (!text) throw_error(errc::usage, "cannot open the template {}; check the name and that it is readable", path);
    return *text;
}

}  // namespace

script_options parse_script_options(std::vector<std::string> const& args, settings_sources const& sources) {
    auto const given = resolve_settings("script", args, sources);
    if (given.flag("help") || given.flag("help-all")) {
        script_options asked;
        asked.help = true;
        asked.help_all = given.flag("help-all");
        return asked;
    }
    print_notes(given);
    auto options = make_script_options(given);
    if (options.command.empty())
        throw error(errc::usage, "the program is missing; give it after --, as in: muster script … -- python3 train.py");
    return options;
}

script_plan plan_job(script_options& options, environment const& env) {
    if (options.muster.empty()) options.muster = self_program().string();
    auto const folders = site_search_path(env);
    auto const where = load_site(options.site, folders);
    // The absolute path finds a file from the job's working directory, too.
    if (options.site != where.name) options.site = std::filesystem::absolute(options.site);
    if (options.gpus > 0 && options.ranks > 0) options.has_gpus = may_have_gpus(where, env);  // asked if it makes a difference
    auto plan = plan_script(where, options);
    auto const named = options.template_file;
    options.template_file = find_template(where, named, folders);
    if (named.empty() && !options.template_file.empty())
        plan.notes.push_back(fmt::format("the template {} takes the place of the built-in one", options.template_file));
    return plan;
}

std::string render_script(script_request const& request, std::string const& template_file) {
    return template_file.empty() ? render(request) : render(request, read_template(template_file), template_file);
}

int script_command(std::vector<std::string> const& args, environment const& env) {
    auto options = parse_script_options(args, real_settings(env));
    if (options.help) {
        fmt::print("{}", fold_help(help_text("script", options.help_all), help_width(env)));
        return 0;
    }
    auto const plan = plan_job(options, env);
    auto const script = render_script(plan.request, options.template_file);
    for (auto const& note : plan.notes) print_note(note);
    if (std::fwrite(script.data(), 1, script.size(), stdout) != script.size() || std::fflush(stdout) != 0)
        throw_system("write", "standard output");
    return 0;
}

}  // namespace muster
