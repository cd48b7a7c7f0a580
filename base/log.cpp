#include "base/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <string>

#include "base/throw_error.hpp"

namespace muster {

namespace {

/// '%' starts a flag in a spdlog pattern.
std::string escape_pattern(std::string_view text) {
    std::string escaped;
    for (char c : text) escaped += c == '%' ? std::string("%%") : std::string(1, c);
    return escaped;
}

}  // namespace

void init_log(std::string_view level, std::string_view host, int rank) {
    auto const parsed = spdlog::level::from_str(std::string(level));
    if (parsed == spdlog::level::off && level != "off")
        throw_error(errc::usage, "unknown log level '{}'; use trace, debug, info, warning, error, critical or off", level);
    std::string who;
    if (!host.empty()) who = rank >= 0 ? fmt::format("{}:{} ", escape_pattern(host), rank) : escape_pattern(host) + " ";
    auto logger = std::make_shared<spdlog::logger>("muster", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(parsed);
    logger->set_pattern("[%H:%M:%S.%e] " + who + "%^%l%$: %v");
    spdlog::set_default_logger(std::move(logger));
}

}  // namespace muster
