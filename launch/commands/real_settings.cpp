#include "launch/commands/real_settings.hpp"

#include <filesystem>

#include "base/trust/trusted_file.hpp"
#include "launch/site/site.hpp"

namespace muster {

namespace fs = std::filesystem;

settings_sources real_settings(environment const& variables) {
    settings_sources sources;
    sources.variables = variables;
    sources.project_file = "muster.toml";
    if (auto const folder = variables.get_or("XDG_CONFIG_HOME", ""); !folder.empty())
        sources.user_file = (fs::path(folder) / "muster" / "muster.toml").string();
    else if (auto const home = variables.get_or("HOME", ""); !home.empty())
        sources.user_file = (fs::path(home) / ".config" / "muster" / "muster.toml").string();
    sources.read_file = [](std::string const& path) { return read_small_file(path, "settings file"); };
    sources.distrust = [](std::string const& path) { return distrust(path); };
    sources.load_site = [folders = site_search_path(variables)](std::string const& name) {
        auto const where = load_site(name, folders);
        return site_settings{where.name, where.settings};
    };
    return sources;
}

}  // namespace muster
