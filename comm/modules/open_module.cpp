#include "comm/modules/open_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "comm/c_api/muster_comm.h"

namespace muster::modules {

namespace {

std::string_view file_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

/// Returns the folder of the library that holds this code.
std::string own_folder() {
    Dl_info found{};
    if (::dladdr(reinterpret_cast<void const*>(&muster_comm_abi), &found) == 0 || found.dli_fname == nullptr) return ".";
    std::string const path = found.dli_fname;
    auto const slash = path.rfind('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Returns what the loader's message names as missing ("libmpi.so.40: cannot open shared object file: …"), or nothing.
std::string missing_library(std::string_view message) {
    auto const end = message.find(": cannot open shared object file");
    return end == std::string_view::npos ? "" : std::string(message.substr(0, end));
}

std::string explain_failure(std::string const& path, std::string const& message, std::string const& needs) {
    spdlog::debug("communicator: {}: {}", path, message);
    auto const missing = missing_library(message);
    return fmt::format("{} cannot be loaded: {}; {}", path,
                       missing.empty() ? "the loader refuses it" : fmt::format("{} is not found", missing), needs);
}

bool is_mpi_library(std::string_view path) {
    static constexpr std::array starts{"libmpi.so",    "libmpich.so",   "libmpi_gnu_", "libmpi_cray",
                                       "libmpi_intel", "libmpi_nvidia", "libmsmpi"};
    auto const name = file_name(path);
    return std::any_of(starts.begin(), starts.end(), [&](char const* start) { return name.starts_with(start); });
}

/// Two MPI libraries in one process would call each other's functions of the same name.
std::string find_second_mpi(std::string const& path, std::vector<std::string> const& before) {
    for (auto const& now : loaded_mpi_libraries())
        if (!before.empty() && std::find(before.begin(), before.end(), now) == before.end())
            return fmt::format(
                "{} needs {}, and the program has loaded another MPI, {}; run the program with the MPI that muster was "
                "built with, or ask for another backend",
                path, now, before.front());
    return {};
}

}  // namespace

std::vector<std::string> loaded_mpi_libraries() {
    std::vector<std::string> found;
    auto const add = [](dl_phdr_info* object, std::size_t, void* to) {
        if (object->dlpi_name != nullptr && is_mpi_library(object->dlpi_name))
            static_cast<std::vector<std::string>*>(to)->emplace_back(object->dlpi_name);
        return 0;
    };
    ::dl_iterate_phdr(add, &found);
    return found;
}

opened_module open_module(std::string const& name, std::string const& given, std::string const& needs) {
    std::string const path = given.empty() ? fmt::format("{}/muster/libmuster_comm_{}.so", own_folder(), name) : given;
    if (::access(path.c_str(), R_OK) != 0) return {nullptr, fmt::format("{} is missing; {}", path, needs)};
    auto const mpi_before = loaded_mpi_libraries();
    // RTLD_GLOBAL, since the plugins of Open MPI and PMIx do not say that they need libmpi and libpmix: they take their symbols
    // from the program's. The module itself exports only its entry.
    void* const opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
    if (opened == nullptr) {
        char const* const message = ::dlerror();
        return {nullptr, explain_failure(path, message != nullptr ? message : "", needs)};
    }
    auto const* const entry = static_cast<module_entry const*>(::dlsym(opened, "muster_comm_module"));
    if (entry == nullptr) return {nullptr, fmt::format("{} is no module of muster; {}", path, needs)};
    if (std::strcmp(entry->build, this_build) != 0)
        return {nullptr, fmt::format("{} is of build \"{}\", libmuster_comm.so of \"{}\"; install both from one build", path,
                                     entry->build, this_build)};
    if (auto const second = find_second_mpi(path, mpi_before); !second.empty()) return {nullptr, second};
    return {entry->functions, {}};
}

}  // namespace muster::modules
