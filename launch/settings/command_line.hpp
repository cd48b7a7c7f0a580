// A command line, read by the table of settings.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launch/settings/setting.hpp"

namespace muster {

/// The words that a command line gives to one setting.
struct given_words {
    std::vector<std::string> entries;
    std::string spelled;  ///< the option as the user wrote it: "-np"
    bool operator==(given_words const&) const = default;
};

struct command_line {
    std::map<std::string, given_words, std::less<>> given;  ///< by name of the setting
    std::vector<std::string> command;                       ///< the program and its arguments, untouched
    std::vector<std::string> notes;                         ///< of other tools' options that change nothing
    bool operator==(command_line const&) const = default;
};

/// Reads the options of `command`. They end at the first word that is not an option, or at `--`. Throws errc::usage: an unknown option
/// (with the nearest known one), a missing value, one that is not right (parse_error), an option given twice, one of another tool
/// that muster does otherwise.
command_line parse_command_line(std::string_view command, std::vector<std::string> const& args);

}  // namespace muster
