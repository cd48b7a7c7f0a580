#include "launch/settings/settings_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/foreign_options.hpp"

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

/// Returns env = {NAME = "value"} as the list that the setting takes.
file_setting read_env(toml_document const& document, toml::table const& table) {
    toml_reader const in(document, table, fmt::format("{}.env", section));
    file_setting read{"env", {}, fmt::format("{}:{}", document.origin, table.source().begin.line)};
    auto const* row = find_configurable("env");
    for (auto const& [key, value] : table) {
        auto const* text = value.as_string();
        if (text == nullptr) in.refuse(key.str(), fmt::format("'{}' must be a text in quotes", key.str()));
        auto entry = fmt::format("{}={}", key.str(), text->get());
        if (auto const fault = fault_of(*row, entry)) in.refuse_key(key.str(), fault->message);
        read.entries.push_back(std::move(entry));
    }
    return read;
}

}  // namespace

std::optional<job_file> parse_job_file(std::string_view text, std::string_view origin, bool required, file_owner owner) {
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
    if (auto const* table = job->get_as<toml::table>("env")) env = read_env(document, *table);
    if (env) job->erase("env");
    read.settings = read_settings(document, *job, std::string(section), {}, owner);
    if (env && !env->entries.empty()) read.settings.push_back(*std::move(env));
    if (!required) return read;
    document.root.erase(section);
    for (auto& above : read_settings(document, document.root, "", {}, owner))
        if (std::ranges::none_of(read.settings, [&](auto const& own) { return own.name == above.name; }))
            read.settings.push_back(std::move(above));
    return read;
}

namespace {

/// Returns the text that an option would have; nothing for a value that no option can have.
std::optional<std::string> text_of(toml::node const& node) {
    if (auto const* text = node.as_string()) return text->get();
    if (auto const* number = node.as_integer()) return std::to_string(number->get());
    if (auto const* real = node.as_floating_point()) return fmt::format("{}", real->get());
    if (auto const* truth = node.as_boolean()) return truth->get() ? "true" : "false";
    return std::nullopt;
}

bool fits(setting const& row, toml::node const& node) {
    switch (row.kind) {
        case setting_kind::flag: return node.is_boolean();
        case setting_kind::integer: return node.is_integer();
        case setting_kind::time: return node.is_string() || node.is_integer() || node.is_floating_point();
        case setting_kind::file:
        case setting_kind::folder:
        case setting_kind::text: return node.is_string();
        case setting_kind::list: return node.is_string() || node.is_integer();
    }
    return false;
}

std::string_view wanted_by(setting const& row) {
    switch (row.kind) {
        case setting_kind::flag: return "true or false";
        case setting_kind::integer: return "a whole number";
        case setting_kind::time: return "a time such as \"5min\", or seconds";
        case setting_kind::file:
        case setting_kind::folder:
        case setting_kind::text: return "a text in quotes";
        case setting_kind::list: break;
    }
    return "a list of texts";
}

constexpr std::string_view job_table = "job";

std::vector<std::string_view> known_keys(std::string_view path) {
    std::vector<std::string_view> names;
    for (auto const& row : settings())
        if (row.is_configurable()) names.push_back(row.name);
    if (path == job_table) names.emplace_back("command");
    return names;
}

/// Returns whether it is an option of the commands that use settings files, and so hardly another key misspelled.
bool is_option_of_runs_or_jobs(setting const& row) {
    return is_listed("run", row) || is_listed("submit", row);
}

/// Refuses a key that is an option's name but not a file's.
void refuse_other_names(toml_reader const& in, toml::table const& table, std::string_view path) {
    for (auto const& [key, value] : table) {
        if (find_configurable(key.str()) != nullptr) continue;
        std::string hyphens(key.str());
        std::ranges::replace(hyphens, '_', '-');
        auto const refuse = [&, name = key.str()](std::string const& way) {
            in.refuse_key(name, fmt::format("unknown key '{}'; {}", name, way));
        };
        if (key == "command" && path != job_table) refuse("it is a key of the table [job]: write it below a line [job]");
        if (path == job_table && hyphens == "nodes")
            refuse("the number of nodes follows from gpus and gpus-per-node, or from ranks and ranks-per-node: write these");
        bool is_option = false;
        auto const refuse_option = [&, name = key.str()] {
            in.refuse_key(name, fmt::format("'{}' is for the command line only", name));
        };
        for (auto const& row : settings()) {
            is_option = is_option || row.name == key.str();
            if (row.name == key.str() && is_option_of_runs_or_jobs(row)) refuse_option();
            for (auto const alias : words_of(row.aliases))
                if (row.is_configurable() && alias.substr(alias.front() == '-') == hyphens)
                    refuse(fmt::format("here it is called '{}'", row.name));
        }
        if (is_directive_of_sbatch(hyphens)) refuse(fmt::format("for sbatch's option write sbatch = [\"--{}=…\"]", hyphens));
        auto const off = std::ranges::find_if(settings(), [&](auto const& row) {
            return row.kind == setting_kind::flag && hyphens == fmt::format("no-{}", row.name);
        });
        if (off != settings().end())
            off->is_configurable() ? refuse(fmt::format("write {} = false", off->name)) : refuse_option();
        auto const known = known_keys(path);
        if (is_option && !nearest(hyphens, std::vector<std::string>(known.begin(), known.end()))) refuse_option();
    }
}

class settings_reader {
  public:
    settings_reader(toml_document const& document, toml_reader const& in) : document_(document), in_(in) {}

    file_setting read(setting const& row, toml::node const& node) const {
        std::string const name(row.name);
        file_setting read{name, {}, fmt::format("{}:{}", document_.origin, node.source().begin.line)};
        if (auto const* list = node.as_array(); list != nullptr && row.kind == setting_kind::list) {
            for (auto const& item : *list) {
                if (!fits(row, item)) in_.refuse(name, fmt::format("'{}' must be {}", name, wanted_by(row)));
                read.entries.push_back(checked(row, *text_of(item)));
            }
            return read;
        }
        if (!fits(row, node)) in_.refuse(name, fmt::format("'{}' must be {}", name, wanted_by(row)));
        try {
            for (auto const& entry : entries_of(row, *text_of(node), name, false)) read.entries.push_back(checked(row, entry));
        } catch (parse_error const& e) {
            if (e.code() == errc::config) throw;
            in_.refuse(name, fmt::format("'{}' cannot be divided into words: a quote is open; close it", name));
        }
        return read;
    }

  private:
    std::string checked(setting const& row, std::string const& entry) const {
        if (auto const fault = fault_of(row, entry)) in_.refuse(row.name, fmt::format("{}: {}", row.name, fault->message));
        return entry;
    }

    toml_document const& document_;
    toml_reader const& in_;
};

}  // namespace

std::vector<file_setting> read_settings(toml_document const& document, toml::table const& table, std::string const& path,
                                        std::string_view meaningless, file_owner owner) {
    // This first reader accepts any key, so that the better answers come before "unknown".
    toml_reader const any(document, table, path);
    refuse_other_names(any, table, path);
    if (!meaningless.empty() && any.has(meaningless))
        any.refuse_key(meaningless, fmt::format("'{}' has no meaning here", meaningless));
    toml_reader const in(document, table, path, known_keys(path), "muster run --help-all and muster script --help-all list");
    settings_reader const reader(document, in);
    std::vector<file_setting> found;
    for (auto const& [key, value] : table) {
        auto const& row = *find_configurable(key.str());
        if (!row.is_for(owner))
            in.refuse_key(
                key.str(),
                fmt::format("'{}' is not for a file of the folder, which may have come from somebody else; give --{}, {}, or "
                            "write it into ~/.config/muster/muster.toml",
                            row.name, row.name, variable_of(row)));
        found.push_back(reader.read(row, value));
    }
    return found;
}

std::vector<file_setting> parse_settings(std::string_view text, std::string_view origin, file_owner owner) {
    auto document = toml_document::parse(text, origin);
    document.root.erase("job");  // parse_job_file reads it
    return read_settings(document, document.root, "", {}, owner);
}

}  // namespace muster
