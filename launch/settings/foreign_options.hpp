// Rewrites options of mpirun, horovodrun, torchrun and srun as muster's own, or refuses them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/settings/setting.hpp"

namespace muster {

/// A command line with only muster's own spellings.
struct rewritten_line {
    std::vector<std::string> options;            ///< options and their values
    std::vector<std::string> command;            ///< the program and its arguments, untouched
    std::map<std::string, std::string> spelled;  ///< by name of the setting: the user's spelling, "-np"
    std::vector<std::string> notes;              ///< about options that change nothing, and why
    bool operator==(rewritten_line const&) const = default;
};

/// Rewrites the options of `args`. They end at the first word that is not an option, or at `--`. Throws errc::usage with muster's
/// way for an option of another tool for which muster works differently; drops one that changes nothing, with a note. Leaves an
/// unknown word as it is.
rewritten_line rewrite_foreign_options(std::string_view command, std::vector<std::string> const& args);

/// Returns whether sbatch has a long option of that name for which muster has no setting: a job gets it by the setting `sbatch`.
bool is_directive_of_sbatch(std::string_view name) noexcept;

/// Returns the variables that srun's --export=ALL,NAME=VALUE,… adds to all others. Throws errc::usage for a value without ALL or
/// with quotes.
std::vector<std::string> read_exports(std::string const& word, std::string const& value);

/// Rewrites values of other tools: torchrun's --nproc-per-node=gpu, mpirun's --map-by ppr:4:node:pe=2, --bind-to package. Returns
/// the resulting settings, by name. Throws parse_error (errc::usage) for what muster cannot do.
std::vector<std::pair<std::string, std::string>> rewrite_foreign_value(setting const& row, std::string const& value);

}  // namespace muster
