#include "launch/wire/launcher_link.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <tuple>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "base/version.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/run_key.hpp"
#include "launch/wire/shim_directions.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace {

constexpr duration connect_limit{5};
constexpr duration answer_limit{5};
constexpr std::size_t answer_bytes = frame_header_bytes + std::tuple_size_v<nonce>;
constexpr std::size_t proof_bytes = frame_header_bytes + sealing_bytes;  // an empty sealed frame

/// Reads at most `bytes`; fewer if the other end closes or at `end`.
std::string read_bytes(int fd, std::size_t bytes, event_loop::clock::time_point end) {
    std::string text;
    while (text.size() < bytes) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(end - event_loop::clock::now()).count();
        pollfd one{fd, POLLIN, 0};
        if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) break;
        std::array<char, answer_bytes + proof_bytes> part{};
        ssize_t const count = ::recv(fd, part.data(), std::min(part.size(), bytes - text.size()), 0);
        if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (count <= 0) break;
        text.append(part.data(), static_cast<std::size_t>(count));
    }
    return text;
}

/// Returns the frame in `bytes`, if they hold exactly one.
std::optional<std::string_view> only_frame(std::string_view bytes) {
    if (bytes.size() < frame_header_bytes || frame_size(bytes) != bytes.size() - frame_header_bytes) return std::nullopt;
    return bytes.substr(frame_header_bytes);
}

enum class proof { given, wrong, none };

/// Greets the other end, and makes sure that it has the key.
proof shake_hands(launcher_link& link, run_key const& key) {
    auto const of_shim = make_nonce();
    auto const greeting = with_frame_header(make_greeting(of_shim));
    if (::send(link.socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(greeting.size()))
        return proof::none;
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(answer_limit);
    auto const said = read_bytes(link.socket.get(), answer_bytes + proof_bytes, end);
    if (said.size() < answer_bytes + proof_bytes) return proof::none;
    auto const answer = only_frame(std::string_view(said).substr(0, answer_bytes));
    auto const sealed = only_frame(std::string_view(said).substr(answer_bytes));
    auto const of_launcher = answer ? read_answer(*answer) : std::nullopt;
    if (!of_launcher || !sealed) return proof::wrong;
    link.session = std::make_unique<secure_session>(key, wire_end::shim, of_shim, *of_launcher);
    return link.session->open(*sealed) ? proof::given : proof::wrong;
}

/// Says why an address is no good.
struct refusal {
    std::string why;
    errc code = errc::unavailable;
};

/// Returns nothing if the launcher does not answer at this address; `no` then says why.
std::optional<launcher_link> try_address(std::string const& host, int port, run_key const& key, duration patience, refusal& no) {
    auto const end = event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(patience);
    duration pause{0.05};
    try {
        for (;; pause = std::min(2 * pause, duration(1))) {
            launcher_link link{connect_to(host, port, connect_limit), nullptr};
            auto const shown = shake_hands(link, key);
            if (shown == proof::given) return link;
            if (shown == proof::wrong) {
                no.why = fmt::format("{}: another program answers there", with_port(host, port));
                return std::nullopt;
            }
            if (event_loop::clock::now() + std::chrono::duration_cast<event_loop::clock::duration>(pause) >= end) break;
            std::this_thread::sleep_for(pause);
        }
        no.why =
            fmt::format("{}: it accepts connections, but said nothing for {}", with_port(host, port), format_duration(patience));
    } catch (error const& e) {
        no = {e.what(), e.code()};
    }
    return std::nullopt;
}

/// Returns the first of "ADDRESS:PORT,ADDRESS:PORT" at which the launcher answers.
launcher_link find_launcher(std::string const& addresses, run_key const& key, duration patience) {
    std::string refused;
    bool listens = false;  // somebody, or it cannot be known
    for (auto const entry : split(addresses, ',')) {
        auto const colon = entry.rfind(':');
        auto const port = colon == std::string_view::npos ? std::nullopt : parse_integer(entry.substr(colon + 1));
        if (!port) throw_error(errc::parse, "MUSTER_LAUNCHER={} is no list of ADDRESS:PORT", addresses);
        auto host = entry.substr(0, colon);
        if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
        refusal no;
        if (auto link = try_address(std::string(host), static_cast<int>(*port), key, patience, no)) return std::move(*link);
        refused += "\n  " + no.why;
        listens = listens || no.code != errc::not_found;
    }
    throw_error(listens ? errc::unavailable : errc::not_found,
                "cannot reach muster run from {}; tried{}\n  let compute nodes connect to it, or name the interface they reach "
                "it by with --network-interface",
                short_host_name(), refused);
}

/// Returns Slurm's name for this step, or "" outside of one.
std::string step_of(environment const& variables) {
    auto const job = variables.get("SLURM_JOB_ID");
    auto const step = variables.get("SLURM_STEP_ID");
    return job && step ? fmt::format("{}.{}", *job, *step) : std::string();
}

}  // namespace

launcher_link connect_to_launcher(environment const& variables, duration patience) {
    auto const where = variables.get("MUSTER_LAUNCHER");
    auto const secret = variables.get("MUSTER_TOKEN");
    if (!where || !secret)
        throw error(
            errc::usage,
            "muster shim and muster keeper are what muster run starts for ranks and on nodes; start ranks with: muster run");
    return find_launcher(*where, take_key(*secret), patience);
}

wire::hello introduce_shim(environment const& variables, std::string const& host) {
    wire::hello hello;
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
