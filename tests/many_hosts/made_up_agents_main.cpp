// Made-up agents: a stand-in for the hosts of a remote run, of which one process plays thousands. They talk muster's own protocol, and no program runs on them.
//
//   made_up_agents serve SOCKET          plays the agents that are called; on SIGUSR1 their ranks end. At its end prints what it has got
//   made_up_agents [-x...] HOST COMMAND  as ssh: has COMMAND's agent played, and ends once that has reached the starter
//
// MADE_UP_AGENTS is SOCKET. MADE_UP_EXCHANGE, if it is set: as many bytes each rank tells all others once, as an MPI library does.
#include <fmt/format.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/open_files.hpp"
#include "launch/system/signals.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/launcher_link.hpp"

namespace {

using namespace muster;

constexpr std::size_t largest_frame_bytes = 64u << 20;

struct counted {
    std::uint64_t bytes = 0;
    std::uint64_t frames = 0;
};

class made_up_hosts {
  public:
    explicit made_up_hosts(std::string const& path)
        : exchanged_(std::strtoul(environment::capture().get_or("MADE_UP_EXCHANGE", "0").c_str(), nullptr, 10)) {
        raise_open_files();
        ::signal(SIGPIPE, SIG_IGN);
        signals_ = take_signals(std::array{SIGUSR1}, "made-up agents");
        loop_.watch_readable(signals_.get(), [this] { end_ranks(); });
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        path.copy(where.sun_path, sizeof where.sun_path - 1);
        calls_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        if (::bind(calls_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0 || ::listen(calls_.get(), 4096) != 0)
            throw_system("bind", path);
        loop_.watch_readable(calls_.get(), [this] { on_call(); });
        fmt::print("serving\n");
        std::fflush(stdout);
    }

    void run() {
        loop_.run();
        fmt::print("from the starter: {} bytes in {} frames\nfrom the launcher: {} bytes in {} frames\n", from_starter_.bytes,
                   from_starter_.frames, from_launcher_.bytes, from_launcher_.frames);
    }

  private:
    struct host {
        int number = 0;
        unique_fd caller;  ///< until the starter has answered: it takes the end of a shell for that of its agent
        std::unique_ptr<frame_channel> starter, launcher;
        std::vector<int> ranks;
        bool over = false;
    };

    std::unique_ptr<frame_channel> open(environment const& where, host& one, counted& count,
                                        void (made_up_hosts::*on_frame)(host&, std::string_view)) {
        auto link = connect_to_launcher(where);
        auto channel =
            std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                            frame_channel::callbacks{[this, &one, &count, on_frame](std::string_view frame) {
                                                                         count.bytes += frame.size();
                                                                         ++count.frames;
                                                                         (this->*on_frame)(one, frame);
                                                                     },
                                                                     [this, &one](std::string const&) { on_closed(one); }},
                                            largest_frame_bytes);
        channel->secure(std::move(link.session));
        return channel;
    }

    wire::hello hello_of(host const& one) const {
        wire::hello hello;
        hello.version = version();
        hello.host = fmt::format("m{}", one.number + 1);
        hello.pid = 1;
        return hello;
    }

    /// "NUMBER COUNT ADDRESSES KEY"
    void on_call() {
        unique_fd caller(::accept4(calls_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::string text(4096, '\0');
        auto const got = ::recv(caller.get(), text.data(), text.size(), 0);
        if (got <= 0) return;
        text.resize(static_cast<std::size_t>(got));
        auto const words = split(text, ' ');
        environment where;
        where.set("MUSTER_LAUNCHER", std::string(words.at(2)));
        where.set("MUSTER_TOKEN", std::string(words.at(3)));
        auto& one = *hosts_.emplace_back(std::make_unique<host>());
        one.number = static_cast<int>(parse_integer(words.at(0)).value());
        one.starter = open(where, one, from_starter_, &made_up_hosts::on_starter);
        auto hello = hello_of(one);
        hello.rank = one.number;
        hello.world_size = static_cast<int>(parse_integer(words.at(1)).value());
        one.starter->send(wire::encode(hello));
        one.caller = std::move(caller);
    }

    void on_starter(host& one, std::string_view frame) {
        auto const message = wire::decode(frame);
        if (auto const* const meeting = std::get_if<wire::meet_launcher>(&message)) {
            [[maybe_unused]] auto const said = ::send(one.caller.get(), "k", 1, MSG_NOSIGNAL);
            one.caller.reset();
            one.launcher = open(meeting->variables, one, from_launcher_, &made_up_hosts::on_launcher);
            auto hello = hello_of(one);
            hello.agent = one.number;
            hello.world_size = static_cast<int>(hosts_.size());
            one.launcher->send(wire::encode(hello));
        } else if (auto const* const order = std::get_if<wire::start_shims>(&message)) {
            if (first_order_.empty()) first_order_ = order->nspace, fmt::print("a start message of {} bytes\n", frame.size());
            world_size_ = order->world_size;
            one.ranks = unpack_ranks(order->ranks, hosts_.size(), order->world_size).at(static_cast<std::size_t>(one.number));
            for (int const rank : one.ranks) {
                auto hello = hello_of(one);
                hello.rank = rank;
                hello.world_size = world_size_;
                tell(one, rank, hello);
            }
        } else if (std::holds_alternative<wire::exchange>(message)) {
            if (++exchanges_ == hosts_.size()) all_run();
        } else if (std::holds_alternative<wire::bye>(message)) {
            on_closed(one);
        }
    }

    void on_launcher(host& one, std::string_view frame) {
        auto const inner = wire::read_rank_frame(frame);
        auto const message = wire::decode(inner ? inner->bytes : frame);
        auto const each = [&](auto const& answer) {
            for (int const rank : one.ranks) tell(one, rank, answer);
        };
        if (std::holds_alternative<wire::job>(message)) {
            wire::ready ready;
            ready.address = "127.0.0.1";
            ready.master_port = ready.jax_port = 1;
            each(ready);
        } else if (std::holds_alternative<wire::go>(message)) {
            each(wire::started{1});
            started_ += one.ranks.size();
            if (exchanged_ > 0)
                one.starter->send(wire::encode(wire::exchange{"pmi1", "", std::string(exchanged_ * one.ranks.size(), 'x')}));
            else if (started_ == static_cast<std::size_t>(world_size_))
                all_run();
        } else if (auto const* const ping = std::get_if<wire::ping>(&message)) {
            each(wire::pong{ping->number, 0});
        } else if (auto const* const signal = std::get_if<wire::signal>(&message); signal != nullptr && signal->stop) {
            each(wire::gone{});
        } else if (std::holds_alternative<wire::bye>(message) && !one.over) {
            one.over = true;
            one.starter->send(wire::encode(wire::shims_ended{}));
        }
    }

    void all_run() {
        fmt::print("all run\n");
        std::fflush(stdout);
    }

    void end_ranks() {
        signalfd_siginfo info{};
        if (::read(signals_.get(), &info, sizeof info) < 0) return;
        for (auto const& one : hosts_)
            for (int const rank : one->ranks) {
                tell(*one, rank, wire::ended{});
                tell(*one, rank, wire::gone{});
            }
    }

    void on_closed(host& one) {
        one.over = true;
        for (auto const& each : hosts_)
            if (!each->over) return;
        loop_.stop();
    }

    static void tell(host& one, int rank, wire::message const& message) {
        one.launcher->send(wire::encode(wire::rank_frame{rank, wire::encode(message)}));
    }

    std::size_t exchanged_;
    unique_fd signals_;
    event_loop loop_;
    unique_fd calls_;
    std::vector<std::unique_ptr<host>> hosts_;
    counted from_starter_, from_launcher_;
    std::string first_order_;
    int world_size_ = 0;
    std::size_t started_ = 0;
    std::size_t exchanges_ = 0;
};

/// "exec [env NAME=VALUE] MUSTER agent NUMBER COUNT ADDRESSES stdin": has it played, with the key that is on standard input.
int call(std::string const& command) {
    auto const words = shell_split(command, "COMMAND");
    auto const agent = std::find(words.begin(), words.end(), "agent");
    std::string key(128, '\0');
    auto const got = ::read(STDIN_FILENO, key.data(), key.size());
    if (words.end() - agent != 5 || got <= 0) return 1;
    key.resize(static_cast<std::size_t>(got));
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    environment::capture().get_or("MADE_UP_AGENTS", "").copy(where.sun_path, sizeof where.sun_path - 1);
    unique_fd const to(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(to.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) return 2;
    auto const text = fmt::format("{} {} {} {}", agent[1], agent[2], agent[3], trim(key));
    if (::send(to.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return 3;
    char played = 0;
    return ::recv(to.get(), &played, 1, 0) == 1 ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc == 3 && std::string_view(argv[1]) == "serve") {
        made_up_hosts(argv[2]).run();
        return 0;
    }
    return argc < 3 ? 2 : call(argv[argc - 1]);
} catch (std::exception const& e) {
    fmt::print(stderr, "made-up agents: {}\n", e.what());
    return 1;
}
