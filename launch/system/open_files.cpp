#include "launch/system/open_files.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr std::size_t other_files = 64;  // that the launcher itself needs

}  // namespace

rlimit raise_open_files() {
    rlimit before{};
    if (::getrlimit(RLIMIT_NOFILE, &before) != 0) throw_system("getrlimit", "RLIMIT_NOFILE");
    rlimit const raised{before.rlim_max, before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &raised);
    return before;
}

more_open_files::more_open_files(std::size_t connections) {
    inherited_ = raise_open_files();
    if (inherited_.rlim_max != RLIM_INFINITY && inherited_.rlim_max < connections + other_files)
        throw error(errc::system,
                    fmt::format("{} shims need {} open files here, a connection each, and the limit is {}; raise it (ulimit -n)",
                                connections, connections + other_files, inherited_.rlim_max));
}

more_open_files::~more_open_files() {
    ::setrlimit(RLIMIT_NOFILE, &inherited_);
}

}  // namespace muster
