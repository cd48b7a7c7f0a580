// A set of slots with a fast look-up, even for a run with 50,000 slots.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "launch/elastic/generation.hpp"

namespace muster {

/// Built once, and then asked often. It searches few slots one by one and hashes more.
class slot_set {
  public:
    slot_set() = default;
    explicit slot_set(std::vector<slot> slots) {
        few_ = std::move(slots);
        settle();
    }
    explicit slot_set(std::vector<member> const& members) {
        for (auto const& one : members) few_.push_back(one.at);
        settle();
    }
    void add(slot const& at) {
        few_.push_back(at);
        settle();
    }
    bool contains(slot const& at) const { return many_.contains(at) || std::find(few_.begin(), few_.end(), at) != few_.end(); }
    bool empty() const noexcept { return few_.empty() && many_.empty(); }

  private:
    static constexpr std::size_t most_few = 16;
    struct hash {
        std::size_t operator()(slot const& at) const noexcept {
            return std::hash<std::string>()(at.host) * 31 + static_cast<std::size_t>(at.index);
        }
    };
    void settle() {
        if (few_.size() <= most_few) return;
        many_.insert(few_.begin(), few_.end());
        few_.clear();
    }

    std::vector<slot> few_;
    std::unordered_set<slot, hash> many_;
};

}  // namespace muster
