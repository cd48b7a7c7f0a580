#include "io/tree/folder_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <span>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "io/dataset/file_bytes.hpp"
#include "io/tree/file_list.hpp"

namespace muster {

unique_fd open_folder_inside(int root, std::string_view folder) {
    unique_fd at(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.empty()) return at;
    for (std::string_view const part : split(folder, '/')) {
        if (!at) break;
        at.reset(::openat(at.get(), std::string(part).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    }
    return at;
}

int folder_cache::parent(std::string_view path) {
    std::string_view const folder = parent_of(path);
    if (folder.empty()) return root_;
    if (asked_ && folder == open_path_) {
        errno = fault_;
        return open_.get();
    }
    // Down from the folder that is open: a deep tree is not opened from its root for each of its folders.
    bool const below = open_ && !open_path_.empty() && folder.starts_with(open_path_ + "/");
    int const from = below ? open_.get() : root_;
    auto const rest = below ? folder.substr(open_path_.size() + 1) : folder;
    asked_ = true;
    if (how_ == links::refused)
        open_ = open_folder_inside(from, rest);
    else
        open_.reset(::openat(from, std::string(rest).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    open_path_ = folder;
    fault_ = open_ ? 0 : errno;
    return open_.get();
}

unique_fd folder_cache::open(std::string_view path, int flags, mode_t mode) {
    int const folder = parent(path);
    return unique_fd(folder < 0 ? -1 : ::openat(folder, std::string(name_of(path)).c_str(), flags | O_CLOEXEC, mode));
}

std::optional<struct stat> folder_cache::find(std::string_view path) {
    struct stat found {};
    int const folder = parent(path);
    if (folder < 0 || ::fstatat(folder, std::string(name_of(path)).c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return {};
    return found;
}

std::optional<std::string> folder_cache::link_target(std::string_view path, std::size_t most) {
    std::string text(most, '\0');
    int const folder = parent(path);
    ssize_t const length = folder < 0 ? -1 : ::readlinkat(folder, std::string(name_of(path)).c_str(), text.data(), text.size());
    if (length < 0) return {};
    text.resize(static_cast<std::size_t>(length));
    return text;
}

void folder_cache::forget() noexcept {
    open_.reset();
    asked_ = false;
}

std::optional<std::string> read_whole_file(int folder, char const* name) {
    unique_fd const file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno == ENOENT) return std::nullopt;
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0) throw_system("open", name);
    std::string bytes(S_ISREG(found.st_mode) ? static_cast<std::size_t>(found.st_size) : 0, '\0');
    auto const [done, fault] = read_at(file.get(), 0, std::as_writable_bytes(std::span(bytes)));
    if (fault != 0) throw_system("read", name, fault);
    bytes.resize(done);
    return bytes;
}

void write_whole_file(int folder, std::string const& name, std::string_view bytes) {
    std::string const part = name + ".new";
    unique_fd const file(::openat(folder, part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) throw_system("open", part);
    write_all(file.get(), bytes, part);
    if (::renameat(folder, part.c_str(), folder, name.c_str()) != 0) throw_system("rename", part);
}

std::vector<std::string> names_in_folder(int folder) {
    unique_fd own(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    std::unique_ptr<DIR, int (*)(DIR*)> const entries(own ? ::fdopendir(own.get()) : nullptr, ::closedir);
    if (!entries) throw_system("opendir", ".");
    static_cast<void>(own.release());
    std::vector<std::string> names;
    while (dirent const* const next = ::readdir(entries.get())) {
        std::string_view const found = next->d_name;
        if (found != "." && found != "..") names.emplace_back(found);
    }
    return names;
}

void remove_tree(int folder, std::string const& name) {
    if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return;
    if (errno != EISDIR && errno != EPERM) throw_system("unlink", name);
    unique_fd inside(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inside && errno == EACCES && ::fchmodat(folder, name.c_str(), 0700, 0) == 0)
        inside.reset(::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!inside) throw_system("open", name);
    static_cast<void>(::fchmod(inside.get(), 0700));
    for (std::string const& one : names_in_folder(inside.get())) remove_tree(inside.get(), one);
    if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) throw_system("rmdir", name);
}

}  // namespace muster
