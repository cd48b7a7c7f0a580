#include "launch/site_tools/site_command.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>

#include "base/command/command_set.hpp"
#include "base/letters.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/trust/trusted_file.hpp"
#include "jobscripts/quote.hpp"
#include "jobscripts/render.hpp"
#include "launch/help/help.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/settings/settings_file.hpp"
#include "launch/site/site.hpp"
#include "launch/site/site_placement.hpp"
#include "launch/site_tools/cluster_facts.hpp"
#include "launch/system/home_folder.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

constexpr int exit_of_faults = 2;

/// Returns nothing if help was asked for, and printed.
std::optional<settings_result> read_options(std::vector<std::string> const& args, environment const& variables, std::size_t least,
                                            std::size_t most, std::string_view wanted) {
    auto given = resolve_options("site", options_first("site", args), variables);
    if (print_help_if_asked("site", given)) return std::nullopt;
    if (given.command.size() < least || given.command.size() > most) throw_error(errc::usage, "muster site {}", wanted);
    return given;
}

int list(std::vector<std::string> const& args, environment const& variables) {
    auto const given = read_options(args, variables, 0, 0, "list takes no argument; leave it out");
    if (!given) return 0;
    auto const entries = list_sites(site_search_path(variables));
    fmt::print("{}", given->flag("json") ? site_list_json(entries) : site_table(entries, terminal_width(variables)));
    return 0;
}

int show(std::vector<std::string> const& args, environment const& variables) {
    auto const given = read_options(args, variables, 1, 1, "show takes the name of one site; muster site list shows them");
    if (!given) return 0;
    auto const where = load_site(given->command.front(), site_search_path(variables));
    auto const topology = topology_of_site(where, topology_search_path());
    fmt::print("{}", given->flag("json") ? site_json(where, topology) : describe_site(where, topology));
    return 0;
}

/// Returns the faults of a file, including a name that is not its site's.
std::vector<std::string> faults_of(std::string const& file, std::string const& text) {
    auto faults = site_faults(text, file);
    if (!faults.empty()) return faults;
    auto const name = parse_site(text, file).name;
    if (fs::path(file).stem() != name)
        faults.push_back(fmt::format("{}: the site's name is '{}', so the file must be {}.toml", file, name, name));
    return faults;
}

/// Returns whether a text is a settings file without a fault; one with a fault may also be meant as a site file.
bool is_settings_file(std::string const& text, std::string const& file) {
    try {
        auto const job = parse_job_file(text, file, false);
        return job || !parse_settings(text, file).empty();
    } catch (error const&) {
        return false;
    }
}

/// Returns the template that jobs of a site take instead of the built-in one: it lies next to the site's file.
std::string template_beside(fs::path file) {
    file.replace_extension(".mustache");
    return is_plain_file(file) ? file.string() : std::string();
}

/// Adds the template's fault, if a script of the smallest job shows one.
void check_template(site const& where, std::string const& path, std::vector<std::string>& faults) try {
    script_request request;
    request.kind = where.scheduler;
    request.walltime = duration(60);
    request.muster = "muster";
    request.command = {"true"};
    if (auto const text = read_small_file(path, "template")) render(request, *text, path);
} catch (error const& e) {
    faults.emplace_back(e.what());
}

int check(std::vector<std::string> const& args, environment const& variables) {
    auto const given = read_options(args, variables, 1, 1, "check takes one site: its name, or the path of its file");
    if (!given) return 0;
    auto const& named = given->command.front();
    auto const file = path_exists(named) ? named : find_site_file(named, site_search_path(variables)).string();
    auto const text = read_small_file(file, "site file");
    if (!text)
        throw_error(errc::usage, "there is no site file {}; check the path, or give a name that muster site list shows", file);
    if (!looks_like_site(*text) && is_settings_file(*text, file))
        throw_error(errc::usage, "{} is no site file but a settings file; muster config check {} reads it", file, file);
    auto faults = faults_of(file, *text);
    auto const own_template = template_beside(file);
    if (faults.empty() && !own_template.empty()) check_template(parse_site(*text, file), own_template, faults);
    if (given->flag("json")) {
        fmt::print("{}\n",
                   json_text(nlohmann::ordered_json{{"schema", "muster.site-check/1"}, {"file", file}, {"faults", faults}}, 2));
        return faults.empty() ? 0 : exit_of_faults;
    }
    for (auto const& each : faults) print_error("muster", each);
    if (faults.empty())
        fmt::print("{}: the site {}{}, no error\n", file, parse_site(*text, file).name,
                   own_template.empty() ? "" : fmt::format(" and its template {}", own_template));
    else
        fmt::print(stderr, "muster: {}; check again\n",
                   faults.size() == 1 ? "1 fault: correct it" : fmt::format("{} faults: correct them", faults.size()));
    return faults.empty() ? 0 : exit_of_faults;
}

/// Turns the name into one for a file and a site: lower-case letters, digits and dashes.
std::string site_name(std::string_view wanted) {
    std::string name;
    for (char const c : wanted)
        if (is_alphanumeric(c))
            name += lower_case(c);
        else if (!name.empty() && name.back() != '-')
            name += '-';
    while (!name.empty() && name.back() == '-') name.pop_back();
    return name.empty() ? "here" : name;
}

std::string today() {
    auto const now = std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now());
    std::chrono::year_month_day const day(now);
    return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()), static_cast<unsigned>(day.month()),
                       static_cast<unsigned>(day.day()));
}

/// Writes a file that must not exist.
void write_new(fs::path const& path, std::string const& text) {
    auto const file = open_output_file(path.string(), {}, if_there::refused);
    if (!file)
        throw_error(errc::usage, "{} is there already and is not overwritten; give another name, or --output FILE",
                    path.string());
    write_all(file.get(), text, path.string());
}

void make_folder_of(fs::path const& file) {
    std::error_code fault;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), fault);
    if (fault)
        throw_error(errc::io, "cannot make the folder {}: {}; give --output FILE in another one", file.parent_path().string(),
                    fault.message());
}

/// Returns the user's own folder, in which --site finds the file.
fs::path folder_of_sites(environment const& variables) {
    auto const folder = config_folder(variables);
    if (folder.empty()) throw error(errc::usage, "HOME is not set, so there is no folder for the file; give --output FILE");
    return folder + "/sites";
}

void print_next_step(cluster_facts const& facts, std::string const& site) {
    auto const node = facts.shapes.empty() ? node_facts{} : facts.shapes.front();
    bool const local = facts.scheduler == script_kind::local;
    auto const what =
        node.gpus == 0 ? fmt::format("--ranks {}", node.cores.value_or(2)) : fmt::format("--gpus {}", node.gpus.value_or(1));
    fmt::print(stderr, "muster: next: muster script --site {} {}{}{} -- python3 train.py\n", site, what,
               local ? "" : " --time 1h", facts.account_required.value_or(false) ? " --account NAME" : "");
}

int init(std::vector<std::string> const& args, environment const& variables) {
    auto const given = read_options(args, variables, 0, 1, "init takes one name at most, that of the site to be");
    if (!given) return 0;
    auto facts = find_cluster_facts(variables);
    facts.modules = find_modules(variables);
    auto const output = given->text("output");
    auto const stem = output.empty() || output == "-" ? std::string() : fs::path(output).stem().string();
    if (!stem.empty() && !given->command.empty() && site_name(given->command.front()) != site_name(stem))
        throw_error(errc::usage,
                    "init: the name {0} and --output {1} do not go together, since a site is called like its file; give --output "
                    "{2}.toml, or leave {0} out",
                    given->command.front(), output, site_name(given->command.front()));
    auto const name = !stem.empty() ? stem : site_name(given->command.empty() ? facts.name : given->command.front());
    if (auto const fault = find_fault(name, directive_text::name))
        throw_error(errc::usage,
                    "--output {}: a site is called like its file, and '{}' can be no name of one: character {}: {}; give another "
                    "file name, such as {}.toml",
                    output, name, fault->offset + 1, fault->why, site_name(name));
    auto const text = site_file_text(facts, name, today());
    parse_site(text, name + ".toml");  // makes sure that the written file is readable
    if (output == "-") {
        fmt::print("{}", text);
        return 0;
    }
    auto const path = output.empty() ? folder_of_sites(variables) / (name + ".toml") : fs::path(output);
    make_folder_of(path);
    write_new(path, text);
    fmt::print("{}\n", path.string());
    fmt::print(stderr, "muster: wrote what {} told; what it did not tell is a comment there\n", facts.source);
    print_next_step(facts, output.empty() ? name : output.find('/') == std::string::npos ? "./" + output : output);
    return 0;
}

}  // namespace

int site_command(std::vector<std::string> const& args, environment const& variables) {
    auto const verb = args.empty() ? std::string() : args.front();
    std::vector<std::string> const rest(args.begin() + (args.empty() ? 0 : 1), args.end());
    if (verb == "list") return list(rest, variables);
    if (verb == "show") return show(rest, variables);
    if (verb == "check") return check(rest, variables);
    if (verb == "init") return init(rest, variables);
    if (verb.starts_with('-') && !read_options(args, variables, 0, 1, "takes a command first")) return 0;
    constexpr std::string_view known = "give list, show, check or init";
    if (verb.empty()) throw_error(errc::usage, "muster site: the command is missing; {}", known);
    auto const near = nearest(verb, std::vector<std::string>{"list", "show", "check", "init"});
    throw_error(errc::usage, "muster site has no command '{}'{}; {}", without_controls(verb),
                near ? fmt::format(", did you mean {}?", *near) : "", known);
}

}  // namespace muster
