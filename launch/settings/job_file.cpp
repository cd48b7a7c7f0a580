#include "launch/settings/job_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/settings_file.hpp"

namespace muster {

namespace {

constexpr std::string_view section = "job";

std::vector<std::string> read_command(toml_reader const& in, toml::node const& node) {
    std::vector<std::string> words;
    if (auto const* line = node.as_string()) {
        try {
            words = shell_split(line->get(), "command");
        } catch (parse_error const&) {
            in.refuse("command", "'command' cannot be divided into words: a quote is open; close it, or give a list of texts");
        }
    } else if (auto const* list = node.as_array()) {
        for (auto const& item : *list) {
            auto const* word = item.as_string();
            if (word == nullptr) in.refuse("command", "'command' must be a list of texts, as in [\"python3\", \"train.py\"]");
            words.push_back(word->get());
        }
    } else {
        in.refuse("command", "'command' must be a text or a list of texts");
    }
    if (words.empty() || words.front().empty()) in.refuse("command", "'command' is empty; name the program, or leave it out");
    for (auto const& word : words)
        if (word.find('\0') != std::string::npos) in.refuse("command", "a NUL byte cannot be part of a word");
    return words;
}

/// env = {NAME = "value"} as the list that the setting is.
file_setting read_env(toml_document const& document, toml_reader const& in, toml::table const& table) {
    file_setting read{"env", {}, fmt::format("{}:{}", document.origin, table.source().begin.line)};
    auto const* row = find_configurable("env");
    for (auto const& [key, value] : table) {
        auto const* text = value.as_string();
        if (text == nullptr) in.refuse("env", fmt::format("env: '{}' must be a text in quotes", key.str()));
        auto entry = fmt::format("{}={}", key.str(), text->get());
        if (auto const fault = fault_of(*row, entry)) in.refuse("env", fmt::format("env: {}", fault->message));
        read.entries.push_back(std::move(entry));
    }
    return read;
}

}  // namespace

std::optional<job_file> parse_job_file(std::string_view text, std::string_view origin, bool required) {
    auto document = toml_document::parse(text, origin);
    auto* const node = document.root.get(section);
    if (node == nullptr && !required) return std::nullopt;
    if (node == nullptr)
        throw parse_error(origin, text, 0, "there is no table [job]; put one above the settings of the job", errc::config);
    auto* const job = node->as_table();
    if (job == nullptr) {
        toml_reader const root(document, document.root, "");
        root.refuse(section, "'job' must be a table: a line [job], and its keys below");
    }
    toml_reader const in(document, *job, std::string(section));
    job_file read;
    if (auto const* command = job->get("command")) read.command = read_command(in, *command);
    job->erase("command");
    std::optional<file_setting> env;
    if (auto const* table = job->get_as<toml::table>("env")) env = read_env(document, in, *table);
    if (env) job->erase("env");
    read.settings = read_settings(document, *job, std::string(section));
    if (env && !env->entries.empty()) read.settings.push_back(*std::move(env));
    if (!required) return read;
    document.root.erase(section);
    for (auto& above : read_settings(document, document.root, ""))
        if (std::none_of(read.settings.begin(), read.settings.end(), [&](auto const& own) { return own.name == above.name; }))
            read.settings.push_back(std::move(above));
    return read;
}

}  // namespace muster
