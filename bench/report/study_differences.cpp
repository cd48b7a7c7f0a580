// Finds the differences between studies: a row for each setting, with files by name and hash, and commands by their options.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/text.hpp"
#include "bench/report/report_document.hpp"
#include "bench/report/study_context.hpp"
#include "bench/study/program_software.hpp"

namespace muster {

namespace {

using settings = std::vector<std::pair<std::string, std::string>>;
using names = std::map<std::string, std::string>;

constexpr std::string_view program_setting = "plan/program", software_settings = "software/";

/// "plan/launch" as a reader calls it.
std::string setting_words(std::string const& setting) {
    constexpr std::pair<std::string_view, std::string_view> known[]{{"plan/launch", "options of muster run"},
                                                                    {"plan/judged/name", "judged by"},
                                                                    {"plan/judged/rate", "judged by a rate"},
                                                                    {"plan/warmup", "warm-up runs"},
                                                                    {"plan/timeout_s", "time limit of a run, s"},
                                                                    {"plan/metric_file", "metric file"},
                                                                    {"folder", "working directory"},
                                                                    {"version", "version of muster"}};
    for (auto const& [name, words] : known)
        if (setting == name) return std::string(words);
    constexpr std::pair<std::string_view, std::string_view> beginnings[]{
        {"plan/program/", ""},       {"plan/", ""},
        {"variables/", "variable "}, {"software/", "version of "},
        {"files/", "version of "},   {"context/", "machine: "}};
    for (auto const& [begin, words] : beginnings)
        if (setting.starts_with(begin)) return std::string(words) + setting.substr(begin.size());
    return setting;
}

std::string last_name(std::string const& path) {
    return std::filesystem::path(path).filename().string();
}

/// Names the files of each study: by their last name, since a study may have its own copy of a program; their path where a study has
/// two of that name.
std::vector<names> file_names(std::vector<reported_study> const& studies) {
    std::vector<names> out;
    std::map<std::string, std::size_t> most;
    for (auto const& each : studies) {
        std::map<std::string, std::size_t> here;
        out.emplace_back();
        for (auto const& [path, version] : each.results.software)
            if (is_digest(version)) {
                auto const name = last_name(path);
                out.back()[path] = name;
                most[name] = std::max(most[name], ++here[name]);
            }
    }
    for (auto& files : out)
        for (auto& [path, name] : files)
            if (most[name] > 1) name = path;
    return out;
}

/// A word of a command, or an option with its value.
struct command_part {
    std::string option;                ///< "" for a word that is not an option
    std::optional<std::string> value;  ///< nothing if the option has no value
    bool operator==(command_part const&) const = default;
};

bool is_option(std::string const& word) {
    return word.size() > 1 && word.front() == '-' && !parse_real(word);
}

/// Splits a command. Only the program knows which options take a value: the word after an option counts as its value, except an
/// interpreter's script.
std::vector<command_part> parts_of(std::vector<std::string> const& words, names const& files) {
    std::vector<command_part> out;
    if (words.empty()) return out;
    auto const called = [&](std::string const& word) { return files.contains(word) ? files.at(word) : word; };
    auto const script = std::ranges::find(words, program_name(words), last_name);
    bool options_end = false;
    for (auto word = words.begin(); word != words.end(); ++word) {
        options_end |= *word == "--";
        auto const option = word;
        auto const equals = option->find('=');
        if (options_end || !is_option(*option))
            out.push_back({"", called(*option)});
        else if (equals != option->npos)
            out.push_back({option->substr(0, equals), option->substr(equals + 1)});
        else if (option + 1 != words.end() && option + 1 != script && !is_option(*(option + 1)))
            out.push_back({*option, called(*++word)});
        else
            out.push_back({*option, std::nullopt});
    }
    return out;
}

/// All that a command gives for an option; "" where it does not have it.
std::string given_for(std::string const& option, std::vector<command_part> const& parts) {
    std::vector<std::string> out;
    for (auto const& part : parts)
        if (part.option == option) out.push_back(part.value ? shell_quote(*part.value) : "given");
    return join(out, " ");
}

/// The options that differ, with what each study gives; nothing where the commands differ in more than these.
std::optional<std::vector<settings>> option_differences(std::vector<std::vector<command_part>> commands) {
    std::vector<settings> out(commands.size());
    std::vector<std::string> options;
    for (auto const& parts : commands)
        for (auto const& part : parts)
            if (!part.option.empty() && std::ranges::find(options, part.option) == options.end()) options.push_back(part.option);
    for (auto const& option : options) {
        std::vector<std::string> given;
        for (auto const& parts : commands) given.push_back(given_for(option, parts));
        if (std::ranges::count(given, given.front()) == std::ssize(given)) continue;
        for (std::size_t i = 0; i < given.size(); ++i) {
            out[i].emplace_back(std::string(program_setting) + "/" + option, given[i]);
            std::erase_if(commands[i], [&](auto const& part) { return part.option == option; });
        }
    }
    if (std::ranges::count(commands, commands.front()) != std::ssize(commands)) return std::nullopt;
    return out;
}

/// The settings of each study so that the same is called the same in all.
std::vector<settings> compared_settings(std::vector<reported_study> const& studies) {
    auto const files = file_names(studies);
    std::vector<std::vector<command_part>> commands;
    for (std::size_t i = 0; i < studies.size(); ++i) commands.push_back(parts_of(studies[i].results.plan.program, files[i]));
    auto const options = option_differences(commands);
    std::vector<settings> out;
    for (std::size_t i = 0; i < studies.size(); ++i) {
        out.emplace_back();
        for (auto const& [name, value] : study_settings(studies[i].results)) {
            auto const file =
                name.starts_with(software_settings) ? files[i].find(name.substr(software_settings.size())) : files[i].end();
            if (options && name == program_setting)
                out[i].insert(out[i].end(), (*options)[i].begin(), (*options)[i].end());
            else
                out[i].emplace_back(file == files[i].end() ? name : "files/" + file->second, value);
        }
    }
    return out;
}

}  // namespace

std::vector<setting_difference> study_differences(std::vector<reported_study> const& studies) {
    std::vector<setting_difference> out;
    if (studies.size() < 2) return out;
    std::vector<names> all;
    std::vector<std::string> order;
    for (auto const& each : compared_settings(studies)) {
        all.emplace_back();
        for (auto const& [name, value] : each) {
            all.back()[name] = value;
            if (std::ranges::find(order, name) == order.end()) order.push_back(name);
        }
    }
    for (auto const& name : order) {
        std::vector<std::string> values;
        for (auto const& one : all) {
            auto const found = one.find(name);
            values.push_back(found == one.end() ? "" : found->second);
        }
        if (std::ranges::count(values, values.front()) != std::ssize(values))
            out.push_back({name, setting_words(name), std::move(values)});
    }
    return out;
}

}  // namespace muster
