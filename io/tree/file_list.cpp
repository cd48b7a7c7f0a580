#include "io/tree/file_list.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <memory>

#include "base/codec/codec.hpp"
#include "base/throw_error.hpp"
#include "io/tree/workers.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

std::string kind_in_words(mode_t mode) {
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
}

/// The entry of what stat(2) found.
listed_file entry_of(std::string const& full, std::string path, std::uint32_t source, struct stat const& found) {
    listed_file entry;
    entry.source = source;
    entry.path = std::move(path);
    entry.mode = found.st_mode & 0777;
    entry.mtime_ns = mtime_ns_of(found);
    if (S_ISREG(found.st_mode)) {
        entry.size = static_cast<std::uint64_t>(found.st_size);
    } else if (S_ISDIR(found.st_mode)) {
        entry.what = listed_file::kind::folder;
    } else if (S_ISLNK(found.st_mode)) {
        entry.what = listed_file::kind::link;
        std::error_code fault;
        entry.target = fs::read_symlink(full, fault).string();
        if (fault) throw_system("readlink", full, fault.value());
    } else {
        throw_error(errc::usage, "{} is {}, which cannot be copied; remove it, or give sources without it", full,
                    kind_in_words(found.st_mode));
    }
    return entry;
}

std::vector<std::string> names_in(std::string const& folder) {
    std::unique_ptr<DIR, int (*)(DIR*)> const open(::opendir(folder.c_str()), ::closedir);
    if (!open) throw_system("opendir", folder);
    std::vector<std::string> names;
    for (;;) {
        errno = 0;
        dirent const* const next = ::readdir(open.get());
        if (next == nullptr) break;
        std::string_view const name = next->d_name;
        if (name != "." && name != ".." && !name.starts_with(state_folder_name)) names.emplace_back(name);
    }
    if (errno != 0) throw_system("readdir", folder);
    return names;
}

/// Lists level by level: the folders of a level are read, and then what is in them is looked at, by all threads.
void list_below(file_list& list, std::uint32_t source, std::vector<std::string> level, int threads) {
    std::string const& base = list.sources[source];
    while (!level.empty()) {
        std::vector<std::vector<std::string>> names(level.size());
        in_parallel(level.size(), threads, [&](int, std::size_t i) { names[i] = names_in(base + "/" + level[i]); });
        std::vector<std::string> paths;
        for (std::size_t i = 0; i < level.size(); ++i)
            for (std::string const& name : names[i]) paths.push_back(level[i].empty() ? name : level[i] + "/" + name);
        names.clear();
        std::size_t const before = list.files.size();
        list.files.resize(before + paths.size());
        constexpr std::size_t batch = 128;
        in_parallel((paths.size() + batch - 1) / batch, threads, [&](int, std::size_t part) {
            for (std::size_t i = part * batch; i < std::min(paths.size(), (part + 1) * batch); ++i) {
                std::string const full = base + "/" + paths[i];
                struct stat found {};
                if (::lstat(full.c_str(), &found) != 0) throw_system("stat", full);
                list.files[before + i] = entry_of(full, paths[i], source, found);
            }
        });
        level.clear();
        for (std::size_t i = before; i < list.files.size(); ++i)
            if (list.files[i].is_folder()) level.push_back(list.files[i].path);
    }
}

void list_source(file_list& list, std::string source, int threads) {
    while (source.size() > 1 && source.ends_with('/')) source.pop_back();
    struct stat found {};
    if (::stat(source.c_str(), &found) != 0) {
        if (errno == ENOENT) throw_error(errc::not_found, "the source {} does not exist; check its name", source);
        throw_system("stat", source);
    }
    auto const number = static_cast<std::uint32_t>(list.sources.size());
    std::error_code fault;
    std::string full = fs::absolute(source, fault).lexically_normal().string();
    while (full.size() > 1 && full.ends_with('/')) full.pop_back();
    if (name_of(source) == "." || name_of(source) == ".." || source == "/") {
        list.sources.push_back(full);
        return list_below(list, number, {""}, threads);
    }
    std::string const name(name_of(source));
    list.sources.emplace_back(parent_of(full).empty() ? "/" : parent_of(full));
    list.files.push_back(entry_of(full, name, number, found));
    if (S_ISDIR(found.st_mode)) list_below(list, number, {name}, threads);
}

void sort_and_check(file_list& list) {
    std::ranges::sort(list.files, {}, &listed_file::path);
    auto const same = [&](listed_file const& a, listed_file const& b) {
        if (a.path != b.path) return false;
        if (!a.is_folder() || !b.is_folder())
            throw_error(errc::usage, "{} and {} would both become {}; copy them to two folders", source_path(list, a),
                        source_path(list, b), a.path);
        return true;
    };
    list.files.erase(std::unique(list.files.begin(), list.files.end(), same), list.files.end());
}

}  // namespace

std::string_view parent_of(std::string_view path) noexcept {
    auto const slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view name_of(std::string_view path) noexcept {
    auto const slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string source_path(file_list const& list, listed_file const& file) {
    std::string const& base = list.sources.at(file.source);
    return base.ends_with('/') ? base + file.path : base + "/" + file.path;
}

file_list list_files(std::span<std::string const> sources, int threads) {
    file_list list;
    for (std::string const& source : sources) list_source(list, source, threads);
    sort_and_check(list);
    return list;
}

void refuse_target_in_sources(std::span<std::string const> sources, std::string const& target) {
    std::error_code fault;
    fs::path const inner = fs::weakly_canonical(target, fault);
    for (std::string const& source : sources) {
        fs::path const outer = fs::weakly_canonical(source, fault);
        auto const [end, ignored] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
        if (end == outer.end() && fs::is_directory(outer, fault))
            throw_error(errc::usage, "the target {} lies in the source {}; give a folder outside of it", target, source);
    }
}

std::int64_t mtime_ns_of(struct stat const& found) noexcept {
    return std::int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec;
}

timespec timespec_of(std::int64_t ns) noexcept {
    auto const whole = std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds(ns)).count();
    return {whole, ns - whole * 1'000'000'000};
}

bool is_unchanged(listed_file const& file, struct stat const& found) noexcept {
    return S_ISREG(found.st_mode) && static_cast<std::uint64_t>(found.st_size) == file.size &&
           mtime_ns_of(found) == file.mtime_ns;
}

std::string bytes_of_list(file_list const& list) {
    return codec::encode(list);
}

file_list list_of_bytes(std::string_view bytes) try {
    file_list list;
    codec::reader from(bytes);
    from >> list;
    from.end();
    for (listed_file const& file : list.files)
        if (file.source >= list.sources.size()) codec::fail_by_value(file.source);
    return list;
} catch (error const& problem) {
    throw_error(errc::invalid_data, "the list of files is damaged ({}); remove the state folder", problem.what());
}

}  // namespace muster
