// A set of slots that is looked up fast, also where a run has 50,000 of them.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "launch/elastic/generation.hpp"

namespace muster {

/// Made once, and then asked for many. Few slots are looked through; more are hashed.
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
