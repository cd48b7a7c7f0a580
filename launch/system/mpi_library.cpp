#include "launch/system/mpi_library.hpp"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <deque>
#include <set>
#include <utility>

#include "launch/system/elf_file.hpp"

namespace muster {

namespace {

constexpr std::size_t most_libraries = 512;

constexpr std::array default_folders{"/lib/x86_64-linux-gnu",
                                     "/usr/lib/x86_64-linux-gnu",
                                     "/lib/aarch64-linux-gnu",
                                     "/usr/lib/aarch64-linux-gnu",
                                     "/lib64",
                                     "/usr/lib64",
                                     "/lib",
                                     "/usr/lib",
                                     "/usr/local/lib"};

std::string folder_of(std::string const& path) {
    auto const slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) {
    auto const slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string replace_origin(std::string folder, std::string const& origin) {
    for (std::string_view const token : {"${ORIGIN}", "$ORIGIN"})
        for (auto at = folder.find(token); at != std::string::npos; at = folder.find(token, at + origin.size()))
            folder.replace(at, token.size(), origin);
    return folder;
}

std::optional<std::string> find_library(std::string const& name, std::vector<std::string> const& folders) {
    if (name.find('/') != std::string::npos) return name;
    for (auto const& folder : folders) {
        auto path = folder + "/" + name;
        if (access(path.c_str(), R_OK) == 0) return path;
    }
    return std::nullopt;
}

/// Returns the folders in the dynamic loader's order, as far as it matters for finding the file at all.
std::vector<std::string> search_folders(elf_dynamic const& file, std::string const& path,
                                        std::vector<std::string> const& library_path) {
    std::vector<std::string> folders;
    for (auto const& folder : file.search_path) folders.push_back(replace_origin(folder, folder_of(path)));
    folders.insert(folders.end(), default_folders.begin(), default_folders.end());
    folders.insert(folders.end(), library_path.begin(), library_path.end());
    return folders;
}

/// Debian's libtorch has a backend that few use.
bool brings_mpi(std::string_view file_name) noexcept {
    return file_name.starts_with("libtorch");
}

}  // namespace

bool is_mpi_library(std::string_view file_name) noexcept {
    for (std::string_view const start :
         {"libmpi.so", "libmpich.so", "libmpicxx.so", "libmpichcxx.so", "libmpifort.so", "libmpichfort.so"})
        if (file_name.starts_with(start)) return true;
    // libmpi_cxx.so.40, libmpi_mpifh.so.40 (Open MPI), libmpi_cray.so.12, libmpi_gnu_123.so.12 (Cray MPICH)
    return file_name.starts_with("libmpi_") && file_name.find(".so") != std::string_view::npos;
}

std::optional<std::string> links_mpi(std::string const& executable, std::vector<std::string> const& library_path) {
    std::deque<std::string> todo{executable};
    std::set<std::string> seen;
    for (std::size_t count = 0; !todo.empty() && count < most_libraries; ++count) {
        auto const path = std::move(todo.front());
        todo.pop_front();
        auto const file = read_elf_dynamic(path);
        if (!file) continue;
        // A direct dependency is the better answer, so all of a file's come before those of its libraries.
        for (auto const& name : file->needed)
            if (is_mpi_library(name_of(name))) return std::string(name_of(name));
        auto const folders = search_folders(*file, path, library_path);
        for (auto const& name : file->needed) {
            if (!seen.insert(name).second || name.starts_with("libc.so") || name.starts_with("ld-linux") || brings_mpi(name))
                continue;
            if (auto found = find_library(name, folders)) todo.push_back(std::move(*found));
        }
    }
    return std::nullopt;
}

}  // namespace muster
