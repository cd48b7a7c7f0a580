#include "io/copy/copy_target.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <unordered_set>

#include "base/log.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "io/tree/folder_files.hpp"

namespace muster {

namespace {

constexpr char manifest_name[] = "manifest";
constexpr char incoming_name[] = "incoming";
constexpr char lock_name[] = "lock";

void set_times(int folder, char const* name, std::int64_t mtime_ns, std::string const& path) {
    timespec const times[2]{{0, UTIME_OMIT}, timespec_of(mtime_ns)};
    if (::utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW) != 0) throw_system("utimensat", path);
}

void set_mode(int folder, char const* name, std::uint32_t mode, std::string const& path) {
    if (::fchmodat(folder, name, mode, 0) != 0) throw_system("chmod", path);
}

}  // namespace

bool copy_presence::everything() const noexcept {
    return std::ranges::all_of(in_place, [](place p) { return p == place::known; });
}

unique_fd open_own_folder(std::string const& path, bool make) {
    if (make) {
        std::error_code fault;
        std::filesystem::create_directories(path, fault);
        if (fault) throw_error(errc::io, "cannot make the folder {}: {}; give another", path, fault.message());
    }
    unique_fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno == ENOENT && !make) return folder;
    if (!folder && (errno == ELOOP || errno == ENOTDIR))
        throw_error(errc::io, "{} is a symbolic link or no folder; give a folder of your own", path);
    struct stat found {};
    if (!folder || ::fstat(folder.get(), &found) != 0) throw_system("open", path);
    if (found.st_uid != ::geteuid())
        throw_error(errc::io, "the folder {} belongs to the user with number {}; give a folder of your own, such as {}/NAME",
                    path, found.st_uid, path);
    return folder;
}

manifest read_manifest(int state, std::string_view folder) {
    auto const text = read_whole_file(state, manifest_name);
    if (!text) return {};
    return parse_manifest(*text, fmt::format("{}/{}/{}", folder, state_folder_name, manifest_name));
}

copy_target::copy_target(std::string path, std::string state_name, bool look_only)
    : path_(std::move(path)), state_name_(std::move(state_name)), root_(open_own_folder(path_, !look_only)) {
    if (root_) open_state(look_only);
    if (!state_) return;
    try {
        manifest_ = read_manifest(state_.get(), path_);
    } catch (error const& e) {
        if (e.code() != errc::invalid_data) throw;
        spdlog::warn("{}; what it lists is not trusted", e.what());
        manifest_damaged_ = true;
    }
    before_ = read_journal(state_.get());
}

void copy_target::open_state(bool look_only) {
    if (!look_only && ::mkdirat(root_.get(), state_name_.c_str(), 0700) != 0 && errno != EEXIST)
        throw_system("mkdir", path_ + "/" + state_name_);
    state_.reset(::openat(root_.get(), state_name_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat found {};
    if (!state_ && look_only) return;
    if (!state_ || ::fstat(state_.get(), &found) != 0) throw_system("open", path_ + "/" + state_name_);
    if (found.st_uid != ::geteuid())
        throw_error(errc::io, "{}/{} belongs to another user; give another folder", path_, state_name_);
    if (look_only) return;
    lock_.reset(::openat(state_.get(), lock_name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!lock_) throw_system("open", path_ + "/" + state_name_ + "/lock");
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        throw target_in_use(
            fmt::format("another muster-stage works in {}, from this node or, where nodes share the folder, from "
                        "another; wait for it, or give a folder of this node alone",
                        path_));
}

/// Drops what a copy that was killed left of files that are not in this list: they would be placed with the folder around them.
void copy_target::drop_strangers(file_list const& list) {
    if (!before_) {
        incoming_.reset();
        return remove_tree(state_.get(), incoming_name);
    }
    folder_cache folders(incoming_.get(), folder_cache::links::refused);
    auto const wanted = [&](listed_file const& old) {
        auto const at = std::ranges::lower_bound(list.files, old.path, {}, &listed_file::path);
        return at != list.files.end() && at->path == old.path && at->what == old.what;
    };
    for (listed_file const& old : before_->list.files)
        if (!wanted(old))
            if (int const folder = folders.parent(old.path); folder >= 0) remove_tree(folder, std::string(name_of(old.path)));
}

void copy_target::begin(file_list const& list, chunk_plan const& plan, copy_presence const& have) {
    incoming_.reset(::openat(state_.get(), incoming_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (incoming_) drop_strangers(list);
    if (!incoming_) {
        if (::mkdirat(state_.get(), incoming_name, 0700) != 0) throw_system("mkdir", path_ + "/" + state_name_ + "/incoming");
        incoming_.reset(::openat(state_.get(), incoming_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!incoming_) throw_system("open", path_ + "/" + state_name_ + "/incoming");
    }
    journal_contents start{plan.chunk_bytes(), list, {}};
    for (std::size_t i = 0; i < list.files.size(); ++i)
        if (have.in_place[i] != copy_presence::place::known)
            for (std::size_t k = 0; k < plan.count_of(i); ++k)
                if (have.needed[plan.first_of(i) + k] == 0) start.records.push_back({i, k, have.checksums[plan.first_of(i) + k]});
    journal_.emplace(state_.get(), start);
    before_.reset();

    folder_cache folders(incoming_.get(), folder_cache::links::refused);
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        listed_file const& file = list.files[i];
        if (!file.is_folder() && (have.in_place[i] != copy_presence::place::missing || plan.count_of(i) == 1)) continue;
        std::string const name(name_of(file.path));
        int const folder = folders.parent(file.path);
        if (folder < 0) throw_system("open the folder of", file.path);
        if (file.is_folder()) {
            if (::mkdirat(folder, name.c_str(), 0700) != 0 && errno != EEXIST) throw_system("mkdir", file.path);
        } else if (file.is_file()) {
            unique_fd const made(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
            if (!made || ::ftruncate(made.get(), static_cast<off_t>(file.size)) != 0)
                throw_system("make", path_ + "/" + file.path);
        } else {
            remove_tree(folder, name);
            if (::symlinkat(file.target.c_str(), folder, name.c_str()) != 0) throw_system("symlink", path_ + "/" + file.path);
        }
    }
}

void copy_target::place(file_list const& list, copy_presence const& have) const {
    folder_cache from(incoming_.get(), folder_cache::links::refused);
    folder_cache to(root_.get(), folder_cache::links::refused);
    std::unordered_set<std::string_view> moved;  // folders that went to their places with all that is in them
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        listed_file const& file = list.files[i];
        if (moved.contains(parent_of(file.path))) {
            if (file.is_folder()) moved.insert(file.path);
            continue;
        }
        if (have.in_place[i] != copy_presence::place::missing || have.left_out[i] != 0) continue;
        std::string const name(name_of(file.path));
        int const old_folder = from.parent(file.path);
        int const new_folder = old_folder < 0 ? -1 : to.parent(file.path);
        if (new_folder < 0 || ::renameat(old_folder, name.c_str(), new_folder, name.c_str()) != 0) {
            // Another node has made this folder meanwhile, in a target that nodes share (stage out): the files go one by one.
            if (new_folder >= 0 && file.is_folder() && (errno == ENOTEMPTY || errno == EEXIST)) continue;
            throw_system("rename to", path_ + "/" + file.path);
        }
        if (file.is_folder()) {
            moved.insert(file.path);
            from.forget();
            to.forget();
        }
    }
}

void copy_target::finish(file_list const& list, chunk_plan const& plan, copy_presence const& have, bool sync) {
    folder_cache grown(incoming_.get(), folder_cache::links::refused);
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        listed_file const& file = list.files[i];
        // Small files that this process wrote have both already.
        bool const set_here = file.is_file() && (plan.count_of(i) > 1 || have.needed[plan.first_of(i)] == 0);
        bool const link = file.what == listed_file::kind::link;
        if ((!set_here && !link) || have.in_place[i] != copy_presence::place::missing || have.left_out[i] != 0) continue;
        int const folder = grown.parent(file.path);
        std::string const name(name_of(file.path));
        if (!link) set_mode(folder, name.c_str(), file.mode, file.path);
        set_times(folder, name.c_str(), file.mtime_ns, file.path);
    }
    grown.forget();
    for (std::size_t i = 0; i < list.files.size(); ++i)
        if (have.left_out[i] != 0)
            if (int const folder = grown.parent(list.files[i].path); folder >= 0)
                remove_tree(folder, std::string(name_of(list.files[i].path)));
    auto const synchronise = [&] {
        if (sync && ::syncfs(root_.get()) != 0) throw_system("syncfs", path_);
    };
    synchronise();
    place(list, have);

    folder_cache placed(root_.get(), folder_cache::links::refused);
    for (std::size_t i = list.files.size(); i-- > 0;) {
        listed_file const& file = list.files[i];
        if (!file.is_folder()) continue;
        int const folder = placed.parent(file.path);
        std::string const name(name_of(file.path));
        set_mode(folder, name.c_str(), file.mode, file.path);
        set_times(folder, name.c_str(), file.mtime_ns, file.path);
    }
    write_manifest(list, plan, have);
    synchronise();
    tidy();
}

void copy_target::make_mark(std::string const& name) const {
    write_whole_file(state_.get(), name, "");
}

std::size_t copy_target::count_marks(std::string_view prefix) const {
    auto const names = names_in_folder(state_.get());
    return static_cast<std::size_t>(std::ranges::count_if(
        names, [&](std::string const& name) { return name.starts_with(prefix) && !name.ends_with(".new"); }));
}

void copy_target::drop_mark(std::string const& name) const {
    remove_tree(state_.get(), name);
}

void copy_target::tidy() {
    incoming_.reset();
    journal_.reset();
    remove_tree(state_.get(), "journal");
    remove_tree(state_.get(), incoming_name);
}

void copy_target::write_manifest(file_list const& list, chunk_plan const& plan, copy_presence const& have) {
    manifest now;
    now.sources = list.sources;
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        listed_file const& file = list.files[i];
        if (have.left_out[i] != 0 || (file.is_file() && have.in_place[i] == copy_presence::place::known)) continue;
        auto const first = have.checksums.begin() + static_cast<std::ptrdiff_t>(plan.first_of(i));
        now.entries.push_back(
            {file, file.is_file() ? plan.chunk_bytes() : 0, {first, first + static_cast<std::ptrdiff_t>(plan.count_of(i))}});
    }
    manifest_.merge(std::move(now));
    write_whole_file(state_.get(), manifest_name, text_of_manifest(manifest_));
}

void copy_target::refuse_lack_of_space(file_list const& list, chunk_plan const& plan, copy_presence const& have) const {
    struct statvfs found {};
    std::string at = path_;
    while (::statvfs(at.c_str(), &found) != 0) {
        if (errno != ENOENT || at == "." || at == "/") throw_system("statvfs", at);
        at = !parent_of(at).empty() ? std::string(parent_of(at)) : at.starts_with('/') ? "/" : ".";
    }
    std::uint64_t const block = std::max<std::uint64_t>(found.f_frsize, 1);
    std::uint64_t bytes = 0, names = 0;
    for (std::size_t i = 0; i < list.files.size(); ++i) {
        if (have.in_place[i] != copy_presence::place::missing) continue;
        std::uint64_t missing = list.files[i].size;
        bool begun = false;
        for (std::size_t k = 0; k < plan.count_of(i); ++k)
            if (have.needed[plan.first_of(i) + k] == 0) {
                missing -= std::min(plan.chunk_bytes(), missing);
                begun = true;
            }
        bytes += (missing + block - 1) / block * block;
        names += begun ? 0 : 1;
    }
    std::uint64_t const free_bytes = found.f_bavail * block;
    bool const counts_names = found.f_files != 0;
    if (bytes <= free_bytes && (!counts_names || names <= found.f_favail)) return;
    throw_error(errc::io,
                "{} has {} and {} inodes free, and {} in {} files and folders are to be written; free space there, or give "
                "another folder",
                path_, format_bytes(free_bytes), counts_names ? fmt::format("{}", found.f_favail) : "enough", format_bytes(bytes),
                names);
}

}  // namespace muster
