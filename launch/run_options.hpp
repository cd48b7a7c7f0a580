// What `muster run` was asked to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "launch/request.hpp"

namespace muster {

struct run_options {
    request place;
    std::vector<std::string> command;
    std::vector<std::string> exports;  ///< -x: "NAME" or "NAME=value"
    std::string working_dir;
    std::string output_dir;
    bool tag_output = false;
    bool timestamp_output = false;
    bool allow_singletons = false;  ///< ranks may use MPI without meeting their world
    bool scheduler_local = false;   ///< --scheduler local: this node only, whatever job this is
    bool quiet = false;
    std::optional<duration> timeout;
    std::optional<duration> start_timeout;
    duration grace{5};
    bool operator==(run_options const&) const = default;
};

}  // namespace muster
