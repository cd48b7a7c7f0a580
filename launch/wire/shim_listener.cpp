#include "launch/wire/shim_listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr duration introduction_limit{20};
constexpr std::size_t largest_first_frame_bytes = 4096;  // it may not be one of ours: no deep nesting fits

}  // namespace

shim_listener::shim_listener(event_loop& loop, duration lost_after, arrival on_arrival)
    : loop_(loop), lost_after_(lost_after), on_arrival_(std::move(on_arrival)), token_(make_token()), listener_(listen_on_all()) {
    ::fcntl(listener_.socket.get(), F_SETFL, O_NONBLOCK);
    loop_.watch_readable(listener_.socket.get(), [this] { on_caller(); });
}

shim_listener::~shim_listener() {
    loop_.unwatch(listener_.socket.get());
}

std::vector<std::pair<std::string, std::string>> shim_listener::shim_variables(std::string const& interface) const {
    auto const own = interface.empty() ? own_addresses() : addresses_of(interface);
    std::vector<std::string> list;
    for (auto const& one : own) list.push_back(with_port(one.address, listener_.port));
    if (list.empty()) list.push_back(with_port("127.0.0.1", listener_.port));  // a machine alone
    return {{"MUSTER_LAUNCHER", fmt::format("{}", fmt::join(list, ","))}, {"MUSTER_TOKEN", token_.text()}};
}

void shim_listener::on_caller() {
    for (;;) {
        unique_fd socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!socket) return;
        // Our half of the token, as it is: the shim waits for it before it sends anything.
        if (::send(socket.get(), token_.launcher.data(), token_.launcher.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(token_.launcher.size()))
            continue;
        detect_lost_peer(socket.get(), lost_after_);
        auto const id = next_caller_++;
        callers_[id] = std::make_unique<frame_channel>(
            loop_, std::move(socket),
            frame_channel::callbacks{[this, id](std::string_view frame) { on_first_frame(id, frame); },
                                     [this, id](std::string const&) { forget(id); }},
            largest_first_frame_bytes);
        loop_.after(introduction_limit, [this, id] { callers_.erase(id); });
    }
}

/// Not at once: the channel may be in the middle of a callback.
void shim_listener::forget(std::uint64_t which) {
    loop_.after(duration(0), [this, which] { callers_.erase(which); });
}

void shim_listener::on_first_frame(std::uint64_t from, std::string_view frame) {
    wire::hello hello;
    try {
        auto message = wire::decode(frame);
        if (auto* const said = std::get_if<wire::hello>(&message)) hello = std::move(*said);
    } catch (error const& e) {
        spdlog::debug("a connection sent no message of muster: {}", e.what());
    }
    auto& link = callers_.at(from);
    if (same_secret(hello.token, token_.shim)) {
        on_arrival_(hello, link);
        if (link) link->send(wire::encode(wire::bye{0}));
    }
    forget(from);
}

}  // namespace muster
