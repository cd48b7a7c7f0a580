#include "launch/system/home_folder.hpp"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

namespace muster {

bool provide_home(environment& variables) {
    if (!variables.get_or("HOME", "").empty() || ::getpwuid(::geteuid()) != nullptr) return false;
    variables.set("HOME", "/");
    ::setenv("HOME", "/", 1);
    return true;
}

std::string folder_of_user(environment const& variables, char const* xdg, std::string_view usual) {
    if (auto const named = variables.get_or(xdg, ""); !named.empty()) return (std::filesystem::path(named) / "muster").string();
    auto const home = variables.get_or("HOME", "");
    return home.empty() ? home : (std::filesystem::path(home) / usual / "muster").string();
}

std::string name_of_user(uid_t user) {
    auto const* const entry = ::getpwuid(user);
    return entry != nullptr ? entry->pw_name : std::to_string(user);
}

}  // namespace muster
