// Placeholders in a program's arguments: {ranks} and the like become the numbers of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster {

/// The numbers by which a study calls a run.
struct run_numbers {
    int ranks = 1, nodes = 1, repeat = 0;
    std::optional<long> batch;  ///< of one rank; nothing: the study has no batch
};

/// Returns the words with {ranks}, {nodes}, {repeat} and {batch} replaced; "{{" is a brace. Throws parse_error (errc::usage) with
/// a caret for another name, with the nearest known one, and for {batch} without a batch. Pure.
std::vector<std::string> fill_placeholders(std::vector<std::string> const& words, run_numbers const& numbers);
std::string fill_placeholders(std::string const& word, run_numbers const& numbers);

}  // namespace muster
