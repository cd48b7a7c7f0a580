// Options of mpirun, horovodrun, torchrun and srun: rewrites them as muster's own or refuses them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/settings/setting.hpp"

namespace muster {

/// A command line with muster's own spellings only.
struct rewritten_line {
    std::vector<std::string> options;            ///< options and their values
    std::vector<std::string> command;            ///< the program and its arguments, untouched
    std::map<std::string, std::string> spelled;  ///< name of the setting: as the user wrote it, "-np"
    std::vector<std::string> notes;              ///< of options that change nothing, and why
    bool operator==(rewritten_line const&) const = default;
};

/// Rewrites the options of `args`. They end at the first word that is not an option, or at `--`. An option of another tool that muster
/// does otherwise throws errc::usage with muster's way; one that changes nothing is dropped, with a note. A word that nobody knows is left
/// as it is.
rewritten_line rewrite_foreign_options(std::string_view command, std::vector<std::string> const& args);

/// Whether sbatch has a long option of that name, of which muster has none: a job gets it by the setting `sbatch`.
bool is_directive_of_sbatch(std::string_view name) noexcept;

/// The variables that srun's --export=ALL,NAME=VALUE,… adds to all others. Throws errc::usage for a value without ALL or with quotes.
std::vector<std::string> read_exports(std::string const& word, std::string const& value);

/// Rewrites values of other tools: torchrun's --nproc-per-node=gpu, mpirun's --map-by ppr:4:node:pe=2, --bind-to package. The
/// settings that result, by name. Throws parse_error (errc::usage) for what muster cannot do.
std::vector<std::pair<std::string, std::string>> rewrite_foreign_value(setting const& row, std::string const& value);

}  // namespace muster
