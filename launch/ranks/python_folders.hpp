// Folders that bring muster's Python packages to ranks.
#pragma once

#include <filesystem>
#include <string>

#include "base/environment.hpp"

namespace muster {

/// Absolute paths of what belongs to one build or installation; an empty one is not added.
struct python_folders {
    std::string package;  ///< holds the package `muster` and its extension
    std::string horovod;  ///< holds a package `horovod` made of `muster`, and bin/horovodrun
    bool operator==(python_folders const&) const = default;
};

/// The folders of the installation (or build tree) that `program`, an absolute path, belongs to. `package` is empty where
/// `wants_package` is false or it is not there (a build without Python, or a wheel, whose package pip has put where Python finds
/// it), `horovod` where `as_horovod` is false. Throws errc::not_found for a `horovod` that is wanted and not there.
python_folders find_python_folders(std::filesystem::path const& program, bool wants_package, bool as_horovod);

/// Those of them that are here too: another node need not share the installation. Throws errc::not_found for a `horovod` that
/// is not here, naming `host`.
python_folders keep_present(python_folders const& folders, std::string const& host);

/// Adds them: `package` to the end of PYTHONPATH, so that whatever else the user has comes first; `horovod` to the front of
/// PYTHONPATH, and its bin to the front of PATH. Nothing is added twice. Pure.
void add_python_folders(environment& variables, python_folders const& folders);

}  // namespace muster
