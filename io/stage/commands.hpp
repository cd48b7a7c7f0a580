// The commands of muster-stage: their rows and the functions that run them.
#pragma once

#include <string>

#include "base/command/command_set.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "pmix/identity.hpp"

namespace muster::stage {

extern command_row const convert_row;
extern command_row const verify_row;
extern command_row const info_row;
extern command_row const copy_row;
extern command_row const clean_row;
extern command_row const out_row;

/// Each runs on every rank of its world, prints on rank 0, returns an exit code and throws muster::error.
int convert_command(given_options const& given, identity const& who);
int verify_command(given_options const& given, identity const& who, environment const& variables);
int info_command(given_options const& given, identity const& who);
int copy_command(given_options const& given, identity const& who, environment const& variables);
int clean_command(given_options const& given, identity const& who, environment const& variables);
int out_command(given_options const& given, identity const& who, environment const& variables);

/// `verify` of a folder that copy has brought, on every node.
int verify_copy(std::string const& path, given_options const& given, identity const& who, environment const& variables);

/// Returns what `read` reads of an option's text; a fault in that is wrong usage.
template <typename Read>
auto read_option(Read&& read) {
    try {
        return read();
    } catch (parse_error const& e) {
        throw error(errc::usage, e.what());
    }
}

}  // namespace muster::stage
