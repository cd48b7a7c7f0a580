// The engine supervisor's fifth part: the hosts of the engine remote, whose agents carry what their ranks' shims and this process tell each other.
#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "launch/ranks/rank_stream.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/run/engine_supervisor.hpp"

namespace muster {

namespace {

constexpr duration cause_patience{0.3};  ///< for the shims of a dead agent to tell of it
constexpr duration return_patience{3};   ///< for shims whose agent is gone, which then call by themselves

}  // namespace

void engine_supervisor::take_host(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    if (phase_ != phase::gathering) return;
    if (auto const why = ranks_.objection_to_agent(hello); !why.empty()) return fail(why, exit_code(errc::placement));
    int const number = hello.agent;
    auto& host = ranks_.host(number);
    host.link = std::move(link);
    host.link->set_callbacks({[this, number](std::string_view frame) { on_host_frame(number, frame); },
                              [this, number](std::string const& reason) { on_host_lost(number, reason); }},
                             largest_frame_bytes);
    note_progress();
}

void engine_supervisor::on_host_frame(int number, std::string_view frame) {
    auto const one = wire::read_rank_frame(frame);
    if (!one || !ranks_.is_on(one->rank, number)) return;
    auto& rank = ranks_[one->rank];
    if (one->what == wire::rank_frame::kind::frame) return on_frame(rank, one->bytes);
    rank.link.drop_host();
    if (!rank.link.open()) on_link_lost(rank, std::string(frame_channel::closed_by_peer));
}

/// A shim's first message, by its agent. The host's ranks share one job, which the agent fits to each.
void engine_supervisor::on_message(remote_rank& rank, wire::hello const& hello) {
    auto& host = ranks_.host(rank.job.who.node_rank);
    if (hello.rank != rank.job.who.rank || !host.link) return;
    if (phase_ != phase::gathering)
        return host.link->send(wire::encode(wire::rank_frame{hello.rank, wire::encode(wire::bye{0})}));
    if (auto const why = ranks_.objection_to(hello, engine_.name); !why.empty()) return fail(why, exit_code(errc::placement));
    ranks_.admit(hello).link.set_host(host.link, hello.rank);
    output_.set_format(hello.rank, output_format(options_.tag_output, options_.timestamp_output, rank.job.who));
    if (!std::exchange(host.has_job, true)) host.link->send(wire::encode(ranks_.job_of(rank)));
    note_progress();
}

/// Its agent is gone, or stands still: this connection is for what must not wait for it.
void engine_supervisor::take_again(wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
    if (hello.rank < 0 || hello.rank >= static_cast<int>(ranks_.size()) || phase_ == phase::done) return;
    auto& rank = ranks_[hello.rank];
    if (!known_[hello.rank].here() || rank.link.has_own()) return;
    link->set_callbacks({[this, &rank](std::string_view frame) { on_frame(rank, frame); },
                         [this, &rank](std::string const& reason) {
                             if (!rank.link.has_host()) on_link_lost(rank, reason);
                         }},
                        largest_frame_bytes);
    rank.link.set_own(std::move(link));
    rank.answered = beat_;
    if (phase_ == phase::stopping) rank.link.send(wire::encode(wire::signal{stop_signal_, true}));
    if (phase_ == phase::closing) rank.link.send(wire::encode(wire::bye{0}));
}

/// Where the host lives its shims see that their agent is gone, and call here themselves to tell what becomes of their ranks.
void engine_supervisor::on_host_lost(int number, std::string const& reason) {
    if (phase_ == phase::closing || phase_ == phase::done) return;
    auto const each = [this, number](auto const& what) {
        for (int const r : ranks_.host(number).ranks)
            if (auto& rank = ranks_[r]; known_[r].here() && !rank.link.open()) what(rank);
    };
    if (phase_ == phase::gathering) {  // the starter has seen it, too, and is about to say more
        loop_.after(return_patience, [this, number] {
            if (phase_ == phase::gathering) act_on(blame_agent(known_, ranks_.host(number).ranks.front()));
        });
        return;
    }
    if (reason != frame_channel::closed_by_peer) return each([&](remote_rank& rank) { on_link_lost(rank, reason); });
    each([this](remote_rank& rank) { note_orphan(rank.job.who.rank, agent_process); });
    decide_cause_after(cause_patience);
    loop_.after(return_patience, [this, each] {
        each([this](remote_rank& rank) { on_link_lost(rank, std::string(frame_channel::closed_by_peer)); });
    });
}

}  // namespace muster
