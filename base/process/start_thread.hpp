// Starts a thread, and names the limit that stood against it.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace muster {

/// A thread that calls `run`; `what` it is for stands in the error. Throws errc::system.
template <typename Call>
std::thread start_thread(std::string_view what, Call run) {
    try {
        return std::thread(std::move(run));
    } catch (std::system_error const& e) {
        throw_system("pthread_create", what, e.code().value(), "raise the limit of processes with ulimit -u");
    }
}

}  // namespace muster
