#include "launch/commands/real_settings.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "launch/site/site.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

/// Nothing if there is no such file; one that cannot be read is an error, since it would be missed.
std::optional<std::string> read_whole(std::string const& path) {
    std::error_code fault;
    if (!fs::exists(path, fault)) return std::nullopt;
    std::ifstream file(path, std::ios::binary);
    if (!file.is_open() || fs::is_directory(path, fault))
        throw error(errc::config, fmt::format("cannot read the settings file {}; make it a readable file or move it away", path));
    return std::string{std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

settings_sources real_settings(environment const& variables) {
    settings_sources sources;
    sources.variables = variables;
    sources.project_file = "muster.toml";
    if (auto const folder = variables.get_or("XDG_CONFIG_HOME", ""); !folder.empty())
        sources.user_file = (fs::path(folder) / "muster" / "muster.toml").string();
    else if (auto const home = variables.get_or("HOME", ""); !home.empty())
        sources.user_file = (fs::path(home) / ".config" / "muster" / "muster.toml").string();
    sources.read_file = read_whole;
    sources.load_site = [folders = site_search_path(variables)](std::string const& name) {
        auto const where = load_site(name, folders);
        return site_settings{where.name, where.settings};
    };
    return sources;
}

}  // namespace muster
