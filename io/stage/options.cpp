#include "io/stage/options.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster::stage {

namespace po = boost::program_options;

namespace {

std::string help_hint(std::string const& command) {
    return fmt::format("muster-stage {} --help lists the options", command);
}

[[noreturn]] void unknown(std::string const& command, std::string const& word, std::vector<option> const& known) {
    std::vector<std::string> names;
    for (option const& each : known) names.push_back("--" + std::string(split(each.name, ',').front()));
    auto const near = nearest(word.starts_with("--") ? word : "-" + word, names);
    throw error(errc::usage, fmt::format("muster-stage {}: no option '{}'{}; {}", command, word,
                                         near ? fmt::format(", did you mean '{}'?", *near) : "", help_hint(command)));
}

}  // namespace

options::options(std::string const& command, std::vector<option> const& known, std::vector<std::string> const& args,
                 std::size_t files)
    : command_(command) {
    po::options_description described;
    for (option const& each : known) {
        if (each.flag)
            described.add_options()(each.name, "");
        else
            described.add_options()(each.name, po::value<std::string>(), "");
    }
    po::options_description all;
    all.add(described).add_options()("(file)", po::value<std::vector<std::string>>(&files_), "");
    po::positional_options_description words;
    words.add("(file)", -1);
    try {
        int const style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
        po::store(po::command_line_parser(args).options(all).positional(words).style(style).run(), given_);
        po::notify(given_);
    } catch (po::unknown_option const& e) {
        unknown(command, e.get_option_name(), known);
    } catch (po::error const& e) {
        throw error(errc::usage, fmt::format("muster-stage {}: {}; {}", command, e.what(), help_hint(command)));
    }
    if (files_.size() > files)
        throw error(errc::usage,
                    fmt::format("muster-stage {}: what is '{}' for? {}", command, files_[files], help_hint(command)));
}

std::optional<std::string> options::text(char const* name) const {
    if (!has(name)) return std::nullopt;
    return given_[name].as<std::string>();
}

std::string options::needed(char const* name) const {
    auto value = text(name);
    if (!value) throw error(errc::usage, fmt::format("muster-stage {}: give --{}; {}", command_, name, help_hint(command_)));
    return *value;
}

std::uint64_t options::number(char const* name, std::uint64_t least, std::uint64_t most, std::uint64_t otherwise) const {
    auto const value = text(name);
    if (!value) return otherwise;
    auto const parsed = parse_integer(*value);
    if (!parsed || *parsed < 0 || static_cast<std::uint64_t>(*parsed) < least || static_cast<std::uint64_t>(*parsed) > most)
        throw parse_error(fmt::format("--{}", name), *value, 0, fmt::format("expected a whole number from {} to {}", least, most),
                          errc::usage);
    return static_cast<std::uint64_t>(*parsed);
}

}  // namespace muster::stage
