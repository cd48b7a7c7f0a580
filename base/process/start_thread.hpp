// Starts a thread, and names the limit that stood against it.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace muster {

inline constexpr std::size_t least_stack_bytes = std::size_t{2} << 20;

/// Threads that this process starts from now on, libraries' ones too, have stacks of least_stack_bytes at least: by default they have what `ulimit -s` gives
/// to main(), and one of 128 KiB is too small for PMIx' and MPI's threads.
inline void have_room_in_stacks() noexcept {
    pthread_attr_t usual;
    std::size_t bytes = 0;
    if (::pthread_getattr_default_np(&usual) != 0) return;
    if (::pthread_attr_getstacksize(&usual, &bytes) == 0 && bytes < least_stack_bytes &&
        ::pthread_attr_setstacksize(&usual, least_stack_bytes) == 0)
        ::pthread_setattr_default_np(&usual);
    ::pthread_attr_destroy(&usual);
}

/// A thread that calls `run`; `what` it is for stands in the error. Throws errc::system.
template <typename Call>
std::thread start_thread(std::string_view what, Call run) {
    have_room_in_stacks();
    try {
        return std::thread(std::move(run));
    } catch (std::system_error const& e) {
        throw_system("pthread_create", what, e.code().value(), "raise the limit of processes with ulimit -u");
    }
}

}  // namespace muster
