#include "launch/system/open_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t other_files = 64;  // the number that the launcher itself needs

}  // namespace

rlimit raise_open_files() {
    rlimit before{};
    if (::getrlimit(RLIMIT_NOFILE, &before) != 0) throw_system("getrlimit", "RLIMIT_NOFILE");
    rlimit const raised{before.rlim_max, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &raised);
    return before;
}

void make_room_for_open_files(std::size_t count) noexcept {
    rlimit before{};
    if (count == 0 || ::getrlimit(RLIMIT_NOFILE, &before) != 0) return;
    rlimit const raised{before.rlim_max, before.rlim_max};
    bool const is_raised = ::setrlimit(RLIMIT_NOFILE, &raised) == 0;
    auto const most = std::min<rlim_t>(count, is_raised ? raised.rlim_cur : before.rlim_cur);
    for (int const fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {  // any open one will do
        int const highest = ::fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(most) - 1);
        if (highest < 0) continue;
        ::close(highest);  // the table keeps its size
        break;
    }
    if (is_raised) ::setrlimit(RLIMIT_NOFILE, &before);
}

more_open_files::more_open_files(std::size_t connections) {
    inherited_ = raise_open_files();
    if (inherited_.rlim_max != RLIM_INFINITY && inherited_.rlim_max < connections + other_files)
        throw_error(errc::system, "{} connections need {} open files here, and the limit is {}; raise it (ulimit -n)",
                    connections, connections + other_files, inherited_.rlim_max);
}

more_open_files::~more_open_files() {
    ::setrlimit(RLIMIT_NOFILE, &inherited_);
}

}  // namespace muster
