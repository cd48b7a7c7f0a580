// A response cache keeps agreements that may hold again, so that ranks tell each other one bit for each.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

/// A plain value. Every rank keeps one and changes it by the same calls in the same order, so that a position means the same
/// everywhere; only `mine` is a rank's own. Not thread safe.
///
/// The least recently used entry makes room for a new one. A name that comes back after it had to make room says that more names
/// are in use than fit, and doubles the capacity (up to `most`): 10,000 tensors that take turns are all in after their second
/// round, while names that never come back keep it small.
class response_cache {
  public:
    using position = std::size_t;

    explicit response_cache(std::size_t capacity = 1024, std::size_t most = std::size_t{1} << 17);

    std::optional<position> find(std::string const& name) const;

    /// Returns whether `now` repeats this rank's request of that entry: name, operation, types, shapes, reduction, scaling, root, splits.
    bool repeats(position at, exchange_request const& now) const;

    /// Puts what repeats this rank's request of that entry in its place: the same object need not be compared again.
    void replace_mine(position at, std::shared_ptr<exchange_request const> now) { entries_.at(at)->mine = std::move(now); }
    /// Returns whether that position, old or new, holds this very request.
    bool holds(position at, std::shared_ptr<exchange_request const> const& now) const {
        return at < entries_.size() && entries_[at] && entries_[at]->mine == now;
    }

    std::shared_ptr<agreement const> const& at(position where) const;

    /// Adds an agreement, `mine` being this rank's request for it, or replaces the one of the same name.
    position insert(std::shared_ptr<agreement const> what, std::shared_ptr<exchange_request const> mine);

    void erase(position where);
    void clear();
    void touch(position where);  ///< it has been used

    /// Positions lie below this. Those that are free() hold nothing.
    std::size_t positions() const noexcept { return entries_.size(); }
    bool is_free(position where) const { return !entries_.at(where).has_value(); }
    std::size_t used() const noexcept { return by_name_.size(); }
    std::size_t capacity() const noexcept { return capacity_; }

  private:
    struct entry {
        std::shared_ptr<agreement const> what;
        std::shared_ptr<exchange_request const> mine;
        std::list<position>::iterator turn;
    };

    void make_room();
    void remember(std::string const& name);

    std::size_t capacity_, most_;
    std::vector<std::optional<entry>> entries_;
    std::vector<position> free_;
    std::unordered_map<std::string, position> by_name_;
    std::list<position> turns_;  // the least recently used first
    std::unordered_set<std::string> evicted_;
    std::deque<std::string> evicted_order_;
};

}  // namespace muster
