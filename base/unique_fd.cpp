#include "base/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"

namespace muster {

void fd_traits::close(type fd) noexcept {
    ::close(fd);
}

std::pair<unique_fd, unique_fd> make_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_system("pipe2", "for a pipe", 0, "raise the limit of open files with ulimit -n");
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

}  // namespace muster
