// The span of a file that a run has as its standard output or error: tells the lines of a job's script from those of its ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

struct output_span {
    std::string file;  ///< its path, as the launcher sees it
    std::uint64_t from_byte = 0;
    std::optional<std::uint64_t> to_byte;  ///< nothing: the run goes on, or was killed
    bool operator==(output_span const&) const = default;
};

/// Those that begin now: of standard output and standard error where they are regular files; one where both are the same file. None if
/// one of them is a pipe: nobody knows where its reader puts the lines.
std::vector<output_span> begin_output_spans();

/// They end now. A file that is no longer this process' output stays open.
void end_output_spans(std::vector<output_span>& spans);

nlohmann::ordered_json to_json(std::vector<output_span> const& spans);

/// From run.json; none where it has none, or what is no span. Pure.
std::vector<output_span> output_spans_in(nlohmann::json const& run);

}  // namespace muster
