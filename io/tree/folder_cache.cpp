#include "io/tree/folder_cache.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/text.hpp"
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

void folder_cache::forget() noexcept {
    open_.reset();
    asked_ = false;
}

}  // namespace muster
