// The table of muster's commands: what the program runs, and what help, completion and man pages say.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

struct command_row {
    std::string_view name;
    std::string_view what;       ///< one line
    std::string_view synopsis;   ///< behind the name: "[options] [--] program [args…]"
    std::string_view examples;   ///< lines of two columns, the commonest first
    std::string_view arguments;  ///< the words that may come first: "show path check"; empty: none, or any
    std::string_view closing;    ///< lines below the options
    std::string_view manual;     ///< the man page's paragraphs, an empty line between two
    /// Without the command's own name in `args`; the environment is the process'. Returns the exit code, throws muster::error.
    /// None: the program muster-NAME beside this one.
    int (*run)(std::vector<std::string> const& args, environment const& variables) = nullptr;
    bool hidden = false;  ///< not shown: for muster itself, or for building it
};

/// In the order of display.
std::span<command_row const> commands() noexcept;
command_row const* find_command(std::string_view name) noexcept;

}  // namespace muster
