// The span of a file that a run has as its standard output or error: distinguishes the lines of a job's script from those of its
// ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

struct output_span {
    std::string file;  ///< its path for the launcher
    std::uint64_t from_byte = 0;
    std::optional<std::uint64_t> to_byte;  ///< nothing: the run goes on, or was killed
    bool operator==(output_span const&) const = default;
};

/// Returns spans that begin now: for standard output and standard error if they are regular files; one if both are the same file.
/// Returns none if one of them is a pipe: nobody knows where its reader puts the lines.
std::vector<output_span> begin_output_spans();

/// Ends the spans now. A file that is no longer this process' output stays open-ended.
void end_output_spans(std::vector<output_span>& spans);

nlohmann::ordered_json to_json(std::vector<output_span> const& spans);

/// Reads run.json; returns none if it has none or invalid ones. Pure.
std::vector<output_span> output_spans_in(nlohmann::json const& run);

}  // namespace muster
