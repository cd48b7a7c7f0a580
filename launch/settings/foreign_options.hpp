// Options as mpirun, horovodrun, torchrun and srun spell them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launch/settings/setting.hpp"

namespace muster {

/// A command line with muster's own spellings only.
struct own_words {
    std::vector<std::string> options;            ///< options and their values
    std::vector<std::string> command;            ///< the program and its arguments, untouched
    std::map<std::string, std::string> spelled;  ///< name of the setting: as the user wrote it, "-np"
    bool operator==(own_words const&) const = default;
};

/// Rewrites the options of `args`. They end at the first word that is none, or at `--`. An option of another tool that muster
/// does otherwise, or does not need, throws errc::usage with muster's way; one that changes nothing is dropped. A word that
/// nobody knows is left as it is.
own_words rewrite_spellings(std::string_view command, std::vector<std::string> const& args);

/// What other tools' values mean: torchrun's --nproc-per-node=gpu, mpirun's --map-by ppr:4:node:pe=2, --bind-to package. The
/// settings that result, by name. Throws parse_error (errc::usage) for what muster cannot do.
std::vector<std::pair<std::string, std::string>> rewrite_value(setting const& row, std::string const& value);

/// Every spelling that is dropped or refused, for tests and documentation: "--rdzv-backend".
std::vector<std::string> foreign_spellings();

}  // namespace muster
