// Plans the sweep of a program's options in a job script: what --each NAME=V,V does to the job's words.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "jobscripts/quote.hpp"
#include "launch/scripts/script_plan.hpp"

namespace muster {

namespace {

/// Returns whether a job has a value for the name.
bool is_known(std::string const& name, std::vector<each_parameter> const& each) {
    return name == "index" || std::ranges::find(each, name, &each_parameter::name) != each.end();
}

std::string names_of(std::vector<each_parameter> const& each) {
    std::vector<std::string> names;
    for (auto const& one : each) names.push_back(fmt::format("{{{}}}", one.name));
    names.emplace_back("{index}");
    return join(names, ", ");
}

/// Throws parse_error for a {name} for which no --each gives values.
void refuse_unknown(std::string_view what, std::string const& word, std::vector<each_parameter> const& each) {
    for (auto const& at : find_placeholders(word))
        if (!at.is_escaped && !is_known(at.name, each))
            throw parse_error(
                what, word, at.offset,
                fmt::format("no --each gives {{{0}}} values; known are {1}; give --each {0}=…, or write {{{{{0}}}}} "
                            "for the braces themselves",
                            at.name, names_of(each)),
                errc::usage);
}

bool is_used(std::string const& name, script_request const& request) {
    auto const is_in = [&](std::string const& word) {
        return std::ranges::any_of(find_placeholders(word), [&](auto const& at) { return !at.is_escaped && at.name == name; });
    };
    return std::ranges::any_of(request.command, is_in) ||
           std::ranges::any_of(request.environment, [&](auto const& variable) { return is_in(variable.second); });
}

std::string in_capitals(std::string name) {
    for (char& c : name)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return name;
}

void refuse_unused(script_request const& request, std::vector<std::string> const& entries) {
    for (std::size_t i = 0; i < request.each.size(); ++i)
        if (auto const& name = request.each[i].name; !is_used(name, request))
            throw parse_error(
                "--each", entries[i], 0,
                fmt::format("no word of the program has {{{0}}}, so every job would be the same; write it where the "
                            "value goes: -- python3 train.py --{0} {{{0}}}, or --env {1}={{{0}}}",
                            name, in_capitals(name)),
                errc::usage);
}

std::vector<each_parameter> read_all(std::vector<std::string> const& entries) {
    std::vector<each_parameter> each;
    for (auto const& entry : entries) {
        each.push_back(read_each(entry));
        if (std::ranges::count(each, each.back().name, &each_parameter::name) > 1)
            throw parse_error("--each", entry, 0,
                              fmt::format("{} has values already; give all of them in one list", each.back().name), errc::usage);
    }
    if (!each.empty() && count_tasks(each) == 0)
        throw_error(errc::usage, "--each makes more than {} jobs; give fewer values, or sweep one parameter after the other",
                    most_tasks);
    return each;
}

/// Returns the array's jobs. --array may give how many run at a time, "%2", together with --each, but no list of jobs.
std::string array_of(std::vector<each_parameter> const& each, std::string const& array) {
    auto const all = fmt::format("0-{}", count_tasks(each) - 1);
    auto const most = array.starts_with('%') ? parse_integer(array.substr(1)) : std::nullopt;
    if (!array.empty() && (!most || *most < 1))
        throw_error(errc::usage,
                    "--array {} and --each both say which jobs the array has; with --each leave it out, or give how many may run "
                    "at a time: --array %2",
                    array);
    return all + array;
}

/// Directives are the same for all jobs of an array: '@' stands for what each job puts into its name when it starts.
void plan_names(script_request& request) {
    refuse_unknown("--job-name", request.job_name, request.each);
    std::string name;
    std::size_t from = 0;
    for (auto const& at : find_placeholders(request.job_name)) {
        name += request.job_name.substr(from, at.offset - from) + (name.empty() && at.offset == 0 ? "_" : "@");
        from = at.offset + at.length;
    }
    if (from == 0) return;
    if (request.kind != script_kind::slurm)
        throw_error(errc::usage, "--job-name {}: the jobs of an array of {} have one name; leave the braces out",
                    request.job_name, to_string(request.kind));
    for (std::size_t task = 0; task < count_tasks(request.each); ++task)
        static_cast<void>(directive_value("--job-name", fill_word(request.job_name, request.each, task), directive_text::name));
    request.task_name = std::exchange(request.job_name, name + request.job_name.substr(from));
}

}  // namespace

void plan_each(script_request& request, script_options const& options) {
    if (options.each.empty()) return;
    if (!options.sweep.empty()) throw error(errc::usage, "--sweep and --each both make an array; give one of them");
    request.each = read_all(options.each);
    request.array = array_of(request.each, options.array);
    plan_names(request);
}

void check_each_words(script_request const& request, script_options const& options) {
    if (request.each.empty()) return;
    for (auto const& word : request.command) refuse_unknown("the program's word", word, request.each);
    for (auto const& [name, value] : request.environment) refuse_unknown("--env " + name, value, request.each);
    for (auto const& word : request.run_options) refuse_unknown("an option of muster run", word, request.each);
    refuse_unknown("--artifacts", request.artifacts.folder, request.each);
    refuse_unused(request, options.each);
}

void refuse_common_folder(script_request const& request, std::string const& folder) {
    if (request.each.empty() || folder.find("%j") != std::string::npos) return;
    std::map<std::string, std::size_t> tasks;
    for (std::size_t task = 0; task < count_tasks(request.each); ++task) {
        auto const [former, is_new] = tasks.emplace(fill_word(folder, request.each, task), task);
        if (!is_new)
            throw_error(errc::usage,
                        "--output-dir: jobs {} and {} of the sweep would both write to {}; add %j, {{index}} or the other "
                        "parameters to its name",
                        former->second, task, former->first);
    }
}

std::optional<std::string> note_braces(std::vector<std::string> const& command) {
    for (auto const& word : command)
        for (auto const& at : find_placeholders(word)) {
            bool const is_value = at.offset + at.length == word.size() && (at.offset == 0 || word[at.offset - 1] == '=');
            if (!at.is_escaped && is_value)
                return fmt::format("the program gets {{{0}}} as it is: --each {0}=V,V makes a job with each value", at.name);
        }
    return std::nullopt;
}

}  // namespace muster
