#include "launch/wire/launcher_link.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/host_name.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/token.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace {

constexpr duration connect_limit{5};

/// What the launcher shows first: its half of the token, before any of ours is told.
std::string read_greeting(int fd, std::size_t bytes, duration limit) {
    std::string text;
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(limit);
    while (text.size() < bytes) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - event_loop::clock::now()).count();
        pollfd one{fd, POLLIN, 0};
        if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) break;
        std::array<char, 64> part{};
        ssize_t const count = ::recv(fd, part.data(), std::min(part.size(), bytes - text.size()), 0);
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (count <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(count));
    }
    return text;
}

/// The first of "ADDRESS:PORT,ADDRESS:PORT" behind which the launcher answers.
unique_fd find_launcher(std::string const& addresses, token const& secret) {
    std::string refused;
    for (auto const entry : split(addresses, ',')) {
        auto const colon = entry.rfind(':');
        auto const port = colon == std::string_view::npos ? std::nullopt : parse_integer(entry.substr(colon + 1));
        if (!port) throw error(errc::parse, fmt::format("MUSTER_LAUNCHER={} is no list of ADDRESS:PORT", addresses));
        auto host = entry.substr(0, colon);
        if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
        try {
            auto socket = connect_to(std::string(host), static_cast<int>(*port), connect_limit);
            if (same_secret(read_greeting(socket.get(), secret.launcher.size(), connect_limit), secret.launcher)) return socket;
            refused += fmt::format("\n  {}: another program answers there", entry);
        } catch (error const& e) {
            refused += fmt::format("\n  {}", e.what());
        }
    }
    throw error(
        errc::unavailable,
        fmt::format("cannot reach muster run from {}; tried{}\n  let compute nodes connect to it, or name the interface they "
                    "reach it by with --network-interface",
                    short_host_name(), refused));
}

/// What Slurm calls this step, if one it is.
std::string step_of(environment const& variables) {
    auto const job = variables.get("SLURM_JOB_ID");
    auto const step = variables.get("SLURM_STEP_ID");
    return job && step ? fmt::format("{}.{}", *job, *step) : std::string();
}

}  // namespace

unique_fd connect_to_launcher(environment const& variables) {
    auto const where = variables.get("MUSTER_LAUNCHER");
    auto const secret = variables.get("MUSTER_TOKEN");
    if (!where || !secret)
        throw error(errc::usage, "muster shim is what muster run starts beside each rank; start ranks with: muster run");
    return find_launcher(*where, parse_token(*secret));
}

wire::hello introduce_shim(environment const& variables, std::string const& host) {
    wire::hello hello;
    hello.token = parse_token(variables.get_or("MUSTER_TOKEN", "")).shim;
    hello.version = version();
    hello.host = host;
    hello.pid = ::getpid();
    hello.step = step_of(variables);
    try {
        auto const who = identify(variables);
        hello.rank = who.rank;
        hello.world_size = who.world_size;
    } catch (error const& e) {
        hello.fault = e.what();
    }
    return hello;
}

}  // namespace muster
