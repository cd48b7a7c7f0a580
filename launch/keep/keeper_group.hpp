// The process that leads the keepers of a run's nodes: has them copy commits to the next node, and have states where ranks will run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.hpp"
#include "launch/keep/copy_rounds.hpp"
#include "launch/keep/state_arrangement.hpp"
#include "launch/preflight/node_prober.hpp"
#include "launch/settings/run_context.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"
#include "launch/wire/shim_directions.hpp"
#include "launch/wire/shim_listener.hpp"

namespace muster {

/// Forked by the first launcher, it lives as long as the run, over all launchers: `launcher` is its end of a socket pair of which the guardian and each launcher have
/// the other one. It starts the keepers apart from the ranks' agents; in Slurm each has its own step, so that a lost node ends only its own keeper.
/// A keeper that is silent for --heartbeat and 10 s is lost, as one whose connection ends. Another takes its place, a few times, with the memory that ranks there still
/// have open.
class keeper_group {
  public:
    /// One keeper on each node of `run.given`. `run` must outlive this. Throws errc::system, errc::unavailable.
    keeper_group(run_context const& run, unique_fd launcher);
    /// Until no launcher is left and all keepers have been told to end.
    void run();

  private:
    struct node {
        enum class state { awaited, there, due, lost };  ///< due: another is to be started
        std::string name;
        state now = state::awaited;
        std::string why;  ///< it is lost
        std::unique_ptr<frame_channel> link;
        wire::keep_word about;  ///< as it came
        std::vector<wire::kept_copy> copies;
        event_loop::clock::time_point heard{};
        int starts = 0;
        std::uint64_t memory = 0;  ///< of the keeper, or of the former one; 0: none has come yet
        bool took_over = false;    ///< this one has the memory of the former one
    };
    void start_keepers(std::vector<std::size_t> const& whom);
    void start_again();
    bool may_start_again(node const& one) const;
    static bool is_awaited(node const& one) noexcept { return one.now == node::state::awaited || one.now == node::state::due; }
    void watch_silence();
    void on_there(std::size_t which);
    void call_missing();
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_word(std::size_t which, std::string_view frame);
    void on_lost(std::size_t which, std::string const& why);
    void on_fault(std::size_t which, std::string const& fault);
    void note_loss(std::size_t which, std::string const& why);
    void on_launcher(std::string_view frame);
    void proceed();
    void list_all();
    void arrange();
    void conclude();
    void answered(std::size_t which, std::uint64_t round);
    void carry_out_rounds();
    void tell_of_rounds();
    void send(std::size_t which, wire::keep_order const& order);
    void end();

    run_context const& run_;
    bool to_neighbours_, verbose_, quiet_;
    event_loop loop_;
    more_open_files files_;
    std::vector<node> nodes_;
    copy_rounds rounds_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    std::vector<std::unique_ptr<probe_engine>> engines_;
    event_loop::clock::time_point looked_{};
    bool starting_again_ = false;
    frame_channel launcher_;
    std::string session_dir_;  ///< of the present launcher
    std::string last_fault_;   ///< of a copy
    bool ending_ = false, telling_ = false;
    std::uint64_t told_ = 0;  ///< the commit of which it was said that it is on two nodes
    // The arrangement that is under way.
    enum class step { none, awaiting, listing, moving };
    step now_ = step::none;
    wire::place_states wanted_;
    std::vector<std::size_t> node_of_;  ///< of each rank; the number of nodes where there is none
    state_arrangement made_;
    struct open_question {
        std::size_t node;
        std::uint64_t number;
        std::size_t about;  ///< the node that a copy goes to, or the same
        auto operator<=>(open_question const&) const = default;
    };
    std::set<open_question> open_;  ///< answers that are to come
    std::uint64_t question_ = 0;
    std::string not_moved_;  ///< why one of the moves that are under way has failed
    int tries_ = 0;
    std::vector<std::string> notes_;
};

}  // namespace muster
