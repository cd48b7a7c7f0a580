#include "launch/commands/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/process/files.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/site/site.hpp"
#include "launch/system/home_folder.hpp"

namespace muster {

namespace {

/// Returns a note if the user's file would lie in a folder that this user cannot enter, e.g. another user's HOME, which sudo -E
/// and images leave.
std::string note_on_closed_home(std::string const& user_file, environment const& variables) {
    if (user_file.empty() || ::access(user_file.c_str(), F_OK) == 0 || errno != EACCES) return {};
    bool const by_config = !variables.get_or("XDG_CONFIG_HOME", "").empty();
    return fmt::format("no settings of your own are read: user {} may not enter {}; set {} to a folder of your own", ::geteuid(),
                       std::filesystem::path(user_file).parent_path().string(), by_config ? "XDG_CONFIG_HOME" : "HOME");
}

}  // namespace

settings_sources real_settings(environment const& variables) {
    settings_sources sources;
    sources.variables = variables;
    sources.project_file = "muster.toml";
    if (auto const folder = config_folder(variables); !folder.empty()) sources.user_file = folder + "/muster.toml";
    if (auto const note = note_on_closed_home(sources.user_file, variables); !note.empty()) {
        sources.notes.push_back(note);
        sources.user_file.clear();
    }
    // Whoever can write next to the program can replace the program, so these files are trusted like it.
    sources.system_files = {"/etc/muster/muster.toml", (installed_root() / "etc" / "muster.toml").string()};
    // A file is read once and then judged and used from memory: somebody may move another file to its name meanwhile.
    auto const judged = std::make_shared<std::map<std::string, std::optional<std::string>>>();
    sources.read_file = [judged](std::string const& path) {
        auto const known = judged->find(path);
        return known != judged->end() ? known->second : read_small_file(path, "settings file");
    };
    sources.distrust = [judged](std::string const& path) {
        auto found = read_trusted_file(path, "settings file");
        judged->insert_or_assign(path, std::move(found.text));
        return found.distrust;
    };
    sources.distrust_named = [](std::string const& path) {
        auto why = distrust(path);
        return !why.empty() || path_exists(path) ? why : "there is no such file";
    };
    sources.load_site = [folders = site_search_path(variables)](std::string const& name) {
        auto const where = load_site(name, folders);
        return site_settings{where.name, where.settings};
    };
    sources.own_sites = [folders = own_site_folders(variables)] {
        std::vector<std::string> names;
        for (auto const& entry : list_sites(folders))
            if (entry.problem.empty() && entry.known.scheduler != script_kind::local) names.push_back(entry.name);
        return names;
    };
    return sources;
}

std::string job_records_folder(environment const& variables) {
    auto const folder = folder_of_user(variables, "XDG_STATE_HOME", ".local/state");
    return folder.empty() ? folder : folder + "/jobs";
}

}  // namespace muster
