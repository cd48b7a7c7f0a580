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
class keeper_group {
  public:
    /// One keeper on each node of `run.given`. Throws errc::system, errc::unavailable.
    keeper_group(run_context const& run, unique_fd launcher);
    /// Until no launcher is left and all keepers have been told to end.
    void run();

  private:
    struct node {
        enum class state { awaited, there, lost };
        std::string name;
        state now = state::awaited;
        std::string why;  ///< it is lost
        std::unique_ptr<frame_channel> link;
        wire::keep_word about;  ///< as it came
        std::vector<wire::kept_copy> copies;
    };
    void start_keepers(run_context const& run);
    void on_arrival(wire::hello const& hello, std::unique_ptr<frame_channel>& link);
    void on_word(std::size_t which, std::string_view frame);
    void on_lost(std::size_t which, std::string const& why);
    void on_fault(std::size_t which, std::string const& fault);
    void note_loss(std::string const& name, std::string const& why);
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

    bool to_neighbours_, verbose_, quiet_;
    event_loop loop_;
    more_open_files files_;
    std::vector<node> nodes_;
    copy_rounds rounds_;
    shim_listener listener_;
    std::optional<shim_directions> directions_;
    std::unique_ptr<probe_engine> engine_;
    frame_channel launcher_;
    std::string last_fault_;  ///< of a copy
    bool ending_ = false, telling_ = false;
    std::uint64_t told_ = 0;  ///< the commit of which it was said that it is on two nodes
    // The arrangement that is under way.
    enum class step { none, awaiting, listing, moving };
    step now_ = step::none;
    wire::place_states wanted_;
    std::vector<std::size_t> node_of_;  ///< of each rank; the number of nodes where there is none
    state_arrangement made_;
    std::set<std::pair<std::size_t, std::uint64_t>> open_;  ///< answers that are to come: of which node, to which question
    std::uint64_t question_ = 0;
    std::string not_moved_;  ///< why one of the moves that are under way has failed
    int tries_ = 0;
    std::vector<std::string> notes_;
};

}  // namespace muster
