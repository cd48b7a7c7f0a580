// The threads that read samples ahead.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace muster {

/// Starts `count` threads, each of which runs `loop` with all signals blocked: they are for the program's own threads. If one cannot start, calls `stop`,
/// which must make the others return, joins these and throws errc::system.
std::vector<std::thread> start_readers(std::size_t count, std::function<void()> const& loop, std::function<void()> const& stop);

}  // namespace muster
