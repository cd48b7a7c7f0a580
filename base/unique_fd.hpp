// An owner of a file descriptor: closes it once.
#pragma once

#include <utility>

#include "base/unique_handle.hpp"

namespace muster {

struct fd_traits {
    using type = int;
    static type null() noexcept { return -1; }
    static void close(type fd) noexcept;
};
using unique_fd = unique_handle<fd_traits>;

/// Both ends of a pipe, close-on-exec: {read, write}. Throws errc::system.
std::pair<unique_fd, unique_fd> make_pipe();

}  // namespace muster
