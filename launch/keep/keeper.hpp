// A node's keeper holds the memory in which its ranks keep their state, and copies from the node before it, until the end of the
// run.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launch/keep/copy_receiver.hpp"
#include "launch/keep/copy_sender.hpp"
#include "launch/keep/kept_store.hpp"
#include "launch/keep/machines/keeper_duties.hpp"
#include "launch/settings/part_functions.hpp"
#include "launch/system/event_loop.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// `muster keeper` runs on each host; it is started like a probe, and stays while ranks end and are started again. It ends with
/// the process that leads the keepers. It has a low priority, so that it does not slow down the ranks' steps.
class keeper {
  public:
    /// `nodes`: the numbers of those whose keepers were started together, in order; empty: 0, 1, … Throws as connect_to_launcher.
    keeper(std::vector<int> const& nodes, environment const& variables);
    int run();

  private:
    void on_frame(std::string_view frame);
    void on_message(wire::keep_order const& order);
    void on_message(wire::bye const&) { loop_.stop(); }
    template <typename Other>
    void on_message(Other const&) {}
    void look();
    void carry_out(std::vector<keeper_duties::duty> duties);
    void send(keeper_duties::send const& what);
    void introduce(wire::keep_word::kind what);
    void show_life();
    void live();
    void say(wire::keep_word const& word);

    event_loop loop_;
    kept_store own_, of_others_;
    std::unique_ptr<frame_channel> leader_;
    int leader_fd_ = -1;
    std::unique_ptr<copy_receiver> receiver_;
    std::unique_ptr<copy_sender> sender_;
    std::vector<std::unique_ptr<copy_sender>> moves_;
    event_loop::clock::time_point showed_life_{};
    keeper_duties duties_{own_, of_others_};
};

/// Runs a keeper. `muster keeper` may have the numbers of nodes.
int keeper_command(std::vector<std::string> const& args, environment const& variables);

/// Adds the functions of the part keep: the holder of the states that ranks keep, and that command.
void add_keep(part_functions& to);

}  // namespace muster
