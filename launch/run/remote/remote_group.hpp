// Ranks that an engine started on one or several nodes, each below a shim.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launch/engine/engine_table.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/record/sample_record.hpp"
#include "launch/run/rank_group.hpp"
#include "launch/run/remote/engine_process.hpp"
#include "launch/run/remote/rank_gathering.hpp"
#include "launch/run/remote/remote_output.hpp"
#include "launch/run/remote/remote_ranks.hpp"
#include "launch/run/remote/remote_spares.hpp"
#include "launch/run/remote/shim_questions.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

/// Ranks start together, after every shim has come and holds its ports; each rank's shim ends it. Each shim has its own
/// connection or, with the engine remote, uses its host's agent's. This process gives ranks up at its own deadlines, whatever the
/// engine does.
class remote_group final : public rank_group {
  public:
    /// Listens for the shims. `ranks` is in order of rank. All arguments must outlive it. Throws errc::system.
    remote_group(run_context const& run, event_loop& loop, output_writer& writer, group_events& events, engine_row const& engine,
                 std::vector<remote_rank> ranks);

    /// Sets the command that starts the shims, and in it MUSTER_LAUNCHER and MUSTER_TOKEN, which they need. Throws errc::usage,
    /// errc::system.
    void direct_shims(engine_command command, engine_job const& job);

    void start() override;
    void go() override;
    void signal(int number, bool notice) override { ranks_.send_all(wire::signal{number, false, notice}); }
    void end(int signal_number) override;
    bool goes_on_without(verdict const& judged) override;
    bool take_hosts(host_pool const& hosts) override;
    void kill() override;
    void end_spares() override;
    void close(bool failed, int exit_code, int culprit) override;
    verdict finish(bool failed) override;
    void hear_engine() override;
    void on_child() override;
    void resume_output() override { output_.resume(); }
    void inspect(rows_taker then) override { questions_.inspect(std::move(then)); }
    void ask_about(std::string const& command, std::vector<int> const& whom, rows_taker then) override {
        questions_.ask_about(command, whom, std::move(then));
    }
    void look_at_stopped(std::vector<int> const& seats, stopped_taker then) override {
        questions_.look_at_stopped(seats, std::move(then));
    }
    void kill_one(int seat) override;
    void give_up_killed(int seat);

  private:
    static constexpr std::size_t largest_frame_bytes = 16u << 20;

    // connections of shims, and of hosts whose agents carry the shims' messages
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    bool refuses(std::string const& objection);
    remote_rank& admit(wire::hello const& hello);
    void take_again(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void take_host(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_frame(remote_rank& rank, std::string_view frame);
    void on_host_frame(int number, std::string_view frame);
    void on_link_lost(remote_rank& rank, std::string const& reason);
    void on_host_lost(int number, std::string const& reason);
    void note_orphan(rank_evidence& rank, std::string const& daemon);

    void on_message(remote_rank& rank, wire::hello const& hello);
    void on_message(remote_rank& rank, wire::ready const& ready);
    void on_message(remote_rank& rank, wire::started const& started);
    void on_message(remote_rank& rank, wire::failed const& failed);
    void on_message(remote_rank& rank, wire::ended const& ended);
    void on_message(remote_rank& rank, wire::gone const& gone);
    void on_message(remote_rank& rank, wire::used_mpi const& used);
    void on_message(remote_rank& rank, wire::orphaned const& orphaned);
    void on_message(remote_rank& rank, wire::asked_to_end const& asked);
    void on_message(remote_rank& rank, wire::aborting const& aborting);
    void on_message(remote_rank& rank, wire::met const& met);
    void on_message(remote_rank& rank, wire::settled const&);
    void on_message(remote_rank& rank, wire::pong const& pong);
    void on_message(remote_rank& rank, wire::seen const& seen) { questions_.take(rank.job.who.rank, seen); }
    void on_message(remote_rank& rank, wire::sampled const& sampled);
    void on_message(remote_rank& rank, wire::member_packet const& packet);
    template <typename Other>
    void on_message(remote_rank&, Other const&) {}  // messages that only a shim gets

    // for ranks that go on without a lost one, or with newcomers
    member_world::group calls_of_members();
    void begin(generation const& now, std::vector<int> const& seats, std::string const& why);
    bool tell_members(rank_evidence const& one);
    void begin_late(remote_rank& rank);
    void note_left(rank_evidence& one);
    bool takes_late(bool late) const { return late && world_ && events_.now() == run_phase::running; }

    void give_up_late();
    void flush_all(duration limit);
    void on_engine_end();
    void end_engine();
    rank_evidence& known(remote_rank const& rank) { return known_[rank.job.who.rank]; }
    bool any_engine() const { return process_.running() || spares_.any_starter(); }
    bool gathering() const { return events_.now() == run_phase::starting; }
    bool winding_up() const { return events_.now() == run_phase::closing || events_.now() == run_phase::done; }

    run_context const& run_;
    run_options const& options_;
    event_loop& loop_;
    engine_row const& engine_;
    engine_command command_;
    sample_record samples_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    remote_ranks ranks_;
    rank_gathering gathering_;
    remote_output output_;  ///< declared after the ranks, whose shims it tells about room
    shim_questions questions_;
    engine_process process_;
    std::optional<member_world> world_;  ///< nothing: all ranks end together
    remote_spares spares_;
    std::size_t ready_ = 0;
    int stop_signal_ = 0;  ///< the signal that asked the ranks to end
};

}  // namespace muster
