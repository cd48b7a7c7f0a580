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
    asked_ = true;
    open_path_ = folder;
    if (how_ == links::refused)
        open_ = open_folder_inside(root_, folder);
    else
        open_.reset(::openat(root_, open_path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    fault_ = open_ ? 0 : errno;
    return open_.get();
}

void folder_cache::forget() noexcept {
    open_.reset();
    asked_ = false;
}

}  // namespace muster
