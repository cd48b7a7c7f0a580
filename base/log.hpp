// Logging of libraries and programs: writes to standard error.
#pragma once

#include <spdlog/spdlog.h>

#include <string_view>

namespace muster {

/// Sets up the default logger: "HOST:RANK message" (no prefix when `host` is empty, no rank when it is negative), level from
/// `level`: trace, debug, info, warning, error, critical, off. Throws errc::usage on another word. Call once, from main, before
/// any thread.
void init_log(std::string_view level, std::string_view host = {}, int rank = -1);

}  // namespace muster
