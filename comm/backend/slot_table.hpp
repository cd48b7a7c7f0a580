// The table of collectives under way. Gives each a slot and a ticket.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "comm/backend/collective_backend.hpp"

namespace muster::detail {

/// A slot keeps its address, and is used again after it was given back. Not thread safe.
template <typename Slot>
class slot_table {
  public:
    Slot& at(ticket which) { return *slots_[which - 1]; }

    std::size_t size() const noexcept { return slots_.size(); }
    auto const& all() const noexcept { return slots_; }

    /// Returns a free slot. `prepare(slot)` sets up a new one; if it throws, the table stays as it was.
    template <typename Prepare>
    ticket take(Prepare&& prepare) {
        if (free_.empty()) {
            auto made = std::make_unique<Slot>();
            prepare(*made);
            free_.reserve(slots_.size() + 1);  // so that giving back needs no memory
            slots_.push_back(std::move(made));
            return static_cast<ticket>(slots_.size());
        }
        ticket const which = free_.back();
        free_.pop_back();
        return which;
    }

    ticket take() {
        return take([](Slot&) {});
    }

    void put_back(ticket which) noexcept { free_.push_back(which); }

  private:
    std::vector<std::unique_ptr<Slot>> slots_;  // ticket t is slot t-1
    std::vector<ticket> free_;
};

}  // namespace muster::detail
