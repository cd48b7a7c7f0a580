#include "launch/preflight/node_probe.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <memory>

#include "base/error.hpp"
#include "launch/preflight/inspect_node.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/system/network.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/launcher_link.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

namespace {

constexpr duration lifetime{120};
constexpr duration connect_limit{3};
constexpr std::size_t largest_question_bytes = 64u << 20;

/// One at a time: while this looks, or connects, the kernel takes the connections of others to the port that it holds.
class probe {
  public:
    probe(environment const& variables, int first) : variables_(variables), door_(listen_on_all()) {
        auto link = connect_to_launcher(variables);
        launcher_fd_ = link.socket.get();
        detect_lost_peer(launcher_fd_, probe_lost_after);
        launcher_ = std::make_unique<frame_channel>(loop_, std::move(link.socket),
                                                    frame_channel::callbacks{[this](std::string_view frame) { on_frame(frame); },
                                                                             [this](std::string const&) { loop_.stop(); }},
                                                    largest_question_bytes);
        launcher_->secure(std::move(link.session));
        ::fcntl(door_.socket.get(), F_SETFL, O_NONBLOCK);
        loop_.watch_readable(door_.socket.get(), [this] {
            while (unique_fd(::accept4(door_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC))) {
            }
        });
        loop_.after(lifetime, [this] { loop_.stop(); });
        auto hello = introduce_shim(variables, short_host_name());
        hello.rank += first;
        tell(hello);
    }

    void run() { loop_.run(); }

  private:
    void on_frame(std::string_view frame) {
        std::visit([this](auto const& message) { on_message(message); }, wire::decode(frame));
    }

    void on_message(wire::examine const& examine) {
        double const asked_at = clock_now();
        wire::report report{inspect_node(examine.what, variables_, launcher_fd_)};
        report.node.port = door_.port;
        report.node.asked_at = asked_at;
        report.node.answered_at = clock_now();
        tell(report);
    }

    void on_message(wire::reach const& reach) {
        wire::reached reached;
        try {
            connect_to(reach.address, reach.port, connect_limit);
        } catch (error const& e) {
            reached.fault = e.what();
        }
        tell(reached);
    }

    void on_message(wire::bye const&) { loop_.stop(); }

    template <typename Other>
    void on_message(Other const&) {}

    void tell(wire::message const& message) { launcher_->send(wire::encode(message)); }

    environment const& variables_;
    event_loop loop_;
    listener door_;  ///< others connect to it, to see whether they can
    int launcher_fd_ = -1;
    std::unique_ptr<frame_channel> launcher_;
};

}  // namespace

int run_probe(environment const& variables, int first) {
    ::signal(SIGPIPE, SIG_IGN);
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // of the engine's daemon
    probe(variables, first).run();
    return 0;
}

}  // namespace muster
