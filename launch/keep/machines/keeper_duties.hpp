// Decides what a node's keeper does about its leader's orders. Pure, apart from the shelves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launch/keep/machines/copy_shelf.hpp"
#include "launch/wire/messages.hpp"

namespace muster {

/// Drives the copies of the node's ranks (`own`), and those of the node before it (`of_others`). Returns what to say and send, in
/// order.
class keeper_duties {
  public:
    struct item {
        copy_shelf::copy what;
        bool from_others = false;  ///< which shelf has it
        bool for_neighbour = false;
    };
    /// Copies to send to the keeper at this address; after that the keeper says `done`, with the fault.
    struct send {
        std::string address;
        int port = 0;
        std::string key;
        std::vector<item> items;
        wire::keep_word done;
    };
    struct stop_round {};  ///< what is sent for a round is no longer needed
    struct stop_moves {};
    using duty = std::variant<wire::keep_word, send, stop_round, stop_moves>;

    keeper_duties(copy_shelf& own, copy_shelf& of_others) : own_(own), of_others_(of_others) {}

    /// Takes any order except for `adopt`, which concerns the memory.
    std::vector<duty> take(wire::keep_order const& order);
    /// Looks at what ranks have committed; call it often.
    std::vector<duty> look();
    bool reports() const noexcept { return reports_; }

  private:
    void look_for_newest();
    void look_for_held();
    void send_held(wire::keep_order const& order);
    void release(std::uint64_t step);
    void list(wire::keep_order const& order);
    void move(wire::keep_order const& order);
    void settle(wire::keep_order const& order);

    copy_shelf& own_;
    copy_shelf& of_others_;
    std::vector<duty> duties_;
    bool reports_ = false;
    std::uint64_t told_newest_ = 0;
    bool has_ranks_ = true;  ///< at the last look; before the first look, a keeper that took over may have lost them already
    struct holding {
        std::uint64_t round = 0, from = 0;
        std::vector<int> parts;
    };
    std::optional<holding> holding_;
};

}  // namespace muster
