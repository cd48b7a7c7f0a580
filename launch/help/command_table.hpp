// The table of muster's commands, as help, completion and man pages show them; muster_main.cpp has their functions.
#pragma once

#include <span>
#include <string_view>

#include "base/command/command_set.hpp"

namespace muster {

/// In the order of display. Their options are the rows of the table of settings.
std::span<command_row const> commands() noexcept;
command_row const* find_command(std::string_view name) noexcept;

}  // namespace muster
