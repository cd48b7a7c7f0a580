#include "launch/ranks/python_folders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

/// The colon divides folders in PYTHONPATH, and cannot be quoted there.
bool can_be_named(fs::path const& folder) {
    return folder.string().find(':') == std::string::npos;
}

bool holds_muster(fs::path const& folder) {
    std::error_code fault;
    return can_be_named(folder) && fs::is_regular_file(folder / "muster" / "__init__.py", fault) &&
           fs::is_regular_file(folder / "_muster_native.abi3.so", fault);
}

bool holds_horovod(fs::path const& folder) {
    std::error_code fault;
    return can_be_named(folder) && fs::is_regular_file(folder / "horovod" / "__init__.py", fault);
}

/// The build tree's folders only while running from there: behind an installed program such a folder may be anybody's.
fs::path folder_of_python(fs::path const& program) {
    auto const prefix = program.parent_path().parent_path();
    if (prefix == fs::path(MUSTER_BUILD_DIR)) return prefix / "python";
    return prefix / MUSTER_PYTHON_UNDER_PREFIX;
}

bool is_in(std::string_view list, std::string_view folder) {
    auto const entries = split(list, ':');
    return std::find(entries.begin(), entries.end(), folder) != entries.end();
}

void append(environment& variables, std::string_view name, std::string const& folder) {
    auto const before = variables.get_or(name, "");
    variables.set(name, is_in(before, folder) ? join_folders({before}) : join_folders({before, folder}));
}

void prepend(environment& variables, std::string_view name, std::string const& folder) {
    auto const before = variables.get_or(name, "");
    bool const is_first = before == folder || before.starts_with(folder + ":");
    variables.set(name, is_first ? join_folders({before}) : join_folders({folder, before}));
}

}  // namespace

python_folders find_python_folders(fs::path const& program, bool wants_package, bool as_horovod) {
    python_folders found;
    auto const package = folder_of_python(program);
    if (wants_package && holds_muster(package)) found.package = package.string();
    if (!as_horovod) return found;
    auto const horovod = package.parent_path() / "as_horovod";
    if (!holds_horovod(horovod))
        throw error(
            errc::not_found,
            fmt::format("--as-horovod needs the folder {}, and it is not there; build muster with the headers of Python 3.10 or "
                        "later (Debian: libpython3-dev)",
                        horovod.string()));
    found.horovod = horovod.string();
    return found;
}

python_folders keep_present(python_folders const& folders, std::string const& host) {
    python_folders present = folders;
    if (!present.package.empty() && !holds_muster(present.package)) present.package.clear();
    if (!present.horovod.empty() && !holds_horovod(present.horovod))
        throw error(errc::not_found,
                    fmt::format("--as-horovod: {} is not there on {}; install muster at the same place on every node",
                                present.horovod, host));
    return present;
}

void add_python_folders(environment& variables, python_folders const& folders) {
    if (!folders.package.empty()) append(variables, "PYTHONPATH", folders.package);
    if (folders.horovod.empty()) return;
    prepend(variables, "PYTHONPATH", folders.horovod);
    prepend(variables, "PATH", folders.horovod + "/bin");
}

}  // namespace muster
