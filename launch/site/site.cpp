#include "launch/site/site.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/process/files.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/trusted_file.hpp"
#include "launch/system/home_folder.hpp"

namespace muster {

namespace fs = std::filesystem;

namespace {

std::string read_text(fs::path const& path) {
    if (is_folder(path)) throw_error(errc::usage, "{} is a folder, not a site file; give a file", path.string());
    auto text = read_small_file(path.string(), "site file");
    if (!text) throw_error(errc::usage, "cannot open the site file {}; check its name and that it is readable", path.string());
    return *text;
}

site load_file(fs::path const& path) {
    auto const text = read_text(path);
    auto loaded = parse_site(text, path.string());
    if (path.stem() != loaded.name)
        throw parse_error(path.string(), text, text.find("name"),
                          fmt::format("the site's name is '{}', so the file must be {}.toml", loaded.name, loaded.name),
                          errc::config);
    loaded.file = path.string();
    return loaded;
}

/// Maps names to files, over all folders.
std::map<std::string, fs::path> find_files(std::vector<fs::path> const& folders) {
    std::map<std::string, fs::path> found;
    for (auto const& folder : folders)
        for (auto const& path : folder_entries(folder))
            if (path.extension() == ".toml") found.emplace(path.stem().string(), path);
    return found;
}

/// Returns the name nearest in spelling, and those that contain the word or are part of it ("slurm", "polaris-debug").
std::vector<std::string> near_names(std::string const& word, std::vector<std::string> const& names) {
    constexpr std::size_t most = 4, shortest_part = 3;
    std::vector<std::string> near;
    if (auto const one = nearest(word, names)) near.push_back(*one);
    for (auto const& name : names) {
        bool const is_part = word.size() >= shortest_part && (name.find(word) != name.npos || word.find(name) != word.npos);
        if (is_part && near.size() < most && std::ranges::find(near, name) == near.end()) near.push_back(name);
    }
    for (auto& name : near) name = fmt::format("'{}'", name);
    return near;
}

}  // namespace

site with_nodes_of_queue(site where, std::string const& name) {
    auto const queue = std::ranges::find(where.queues, name, &site_queue::name);
    if (queue == where.queues.end() || (!queue->gpus && !queue->cores && !queue->cpus)) return where;
    auto& node = where.node;
    bool const other_threads = queue->cores || queue->cpus;
    if (other_threads) {  // the queue may give only one of the two
        node.cores = queue->cores;
        node.cpus = queue->cpus;
    }
    if (queue->gpus) node.gpus = queue->gpus;
    if (other_threads || node.cpus) where.header.cpus_per_gpu.reset();  // it was a share of [node]'s; now it follows from these
    where.name = fmt::format("queue '{}' of {}", name, where.name);
    return where;
}

std::optional<bool> has_gpus(site const& where) noexcept {
    if (where.node.gpus) return *where.node.gpus > 0;
    return where.header.gpus_by == gpu_request::none ? std::optional(false) : std::nullopt;
}

std::vector<fs::path> own_site_folders(environment const& env) {
    std::vector<fs::path> folders;
    if (auto const listed = env.get("MUSTER_SITE_PATH"))
        for (auto const folder : split(*listed, ':'))
            if (!folder.empty()) folders.emplace_back(folder);
    if (auto const config = config_folder(env); !config.empty()) folders.emplace_back(config + "/sites");
    folders.emplace_back("/etc/muster/sites");
    // This is next to the program rather than at a fixed place, so that an installed tree can be moved.
    folders.push_back(installed_root() / "etc" / "muster" / "sites");
    return folders;
}

fs::path installed_root() {
    return self_program().parent_path().parent_path();
}

std::vector<fs::path> site_search_path(environment const& env) {
    auto folders = own_site_folders(env);
    folders.push_back(installed_root() / "share" / "muster" / "site-configs");
    // The source tree counts only while running from the build tree: another user may own that folder where muster is installed.
    if (self_program().string().starts_with(MUSTER_BUILD_DIR "/")) folders.emplace_back(MUSTER_SITE_CONFIGS_SOURCE);
    return folders;
}

fs::path find_site_file(std::string const& name_or_path, std::vector<fs::path> const& folders) {
    if (name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".toml")) return name_or_path;
    auto const files = find_files(folders);
    if (auto const found = files.find(name_or_path); found != files.end()) return found->second;

    std::vector<std::string> names;
    for (auto const& [name, path] : files) names.push_back(name);
    std::vector<std::string> looked;
    for (auto const& folder : folders) {
        looked.push_back(folder.string() + (is_folder(folder) ? "" : " (not there)"));
    }
    auto const near = near_names(name_or_path, names);
    throw_error(errc::usage, "no site '{}'{}; muster site list shows the {} that there {}; searched for {}.toml in: {}",
                name_or_path, near.empty() ? "" : fmt::format("; did you mean {}?", join(near, " or ")), names.size(),
                names.size() == 1 ? "is" : "are", name_or_path, join(looked, ", "));
}

site load_site(std::string const& name_or_path, std::vector<fs::path> const& folders) {
    return load_file(find_site_file(name_or_path, folders));
}

std::string find_template(site const& where, std::string const& named, std::vector<fs::path> const& folders) {
    if (named.empty()) {
        auto const beside = fs::path(where.file).replace_filename(where.name + ".mustache");
        return !where.file.empty() && path_exists(beside) ? beside.string() : std::string();
    }
    if (named.find('/') != std::string::npos || named.ends_with(".mustache")) return named;
    for (auto const& folder : folders)
        if (auto const file = folder / (named + ".mustache"); path_exists(file)) return file.string();
    throw_error(errc::usage, "no template {}.mustache in the folders of site files; give a file (with a slash)", named);
}

std::vector<site_entry> list_sites(std::vector<fs::path> const& folders) {
    std::vector<site_entry> entries;
    for (auto const& [name, path] : find_files(folders)) {
        site_entry entry{name, path, {}, {}, {}};
        try {
            entry.known = load_file(path);
            entry.description = entry.known.description;
        } catch (error const& e) {
            entry.problem = e.what();
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace muster
