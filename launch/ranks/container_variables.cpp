#include "launch/ranks/container_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "jobscripts/container_folders.hpp"

namespace muster {

namespace {

/// "APPTAINER_BIND", "SINGULARITY_BIND", or empty: no container.
std::string_view bind_variable(std::vector<std::string> const& command) {
    for (std::size_t i = 0; i + 1 < command.size(); ++i) {
        auto const name = std::string_view(command[i]).substr(command[i].rfind('/') + 1);
        if (command[i + 1] != "exec" && command[i + 1] != "run") continue;
        if (name == "apptainer") return "APPTAINER_BIND";
        if (name == "singularity") return "SINGULARITY_BIND";
    }
    return {};
}

bool is_folder_to_bind(std::string const& folder) {
    std::error_code fault;
    return is_to_be_bound(folder) && std::filesystem::is_directory(folder, fault);
}

}  // namespace

void set_container_variables(environment& variables, std::vector<std::string> const& command) {
    auto const bind = bind_variable(command);
    if (bind.empty()) return;
    variables.set_default("UCX_POSIX_USE_PROC_LINK", "n");
    auto folder = variables.get_or("PMIX_SERVER_TMPDIR", "");
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    auto const given = variables.get_or(std::string(bind), "");
    auto const has_it = [&](std::string const& word) { return word.find(folder) != std::string::npos; };
    if (!is_folder_to_bind(folder) || has_it(given) || std::any_of(command.begin(), command.end(), has_it)) return;
    variables.set(std::string(bind), given.empty() ? folder : fmt::format("{},{}", given, folder));
}

}  // namespace muster
