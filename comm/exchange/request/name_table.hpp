// A name table finds the last request of each name.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

/// The last request under each name of each process set, also when it has ended: in the steady state a name, its request and its
/// place in the cache are used again, with no memory asked for. Names that do not come back are forgotten. Not thread safe.
class name_table {
  public:
    /// Where the last request under this name is kept; null if there was no request.
    pending_ptr& last(int set, std::string_view name);

    /// A set that is no more.
    void forget(int set);

    template <typename Body>
    void for_in_flight(Body&& body) const {
        for (auto const& names : by_set_)
            for (auto const& [name, each] : names.requests)
                if (is_waiting(each)) body(*each);
    }

    static bool is_waiting(pending_ptr const& one) noexcept {
        return one && one->state.load(std::memory_order_acquire) == pending_request::phase::waiting;
    }

  private:
    struct text_hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    struct names_of_set {
        std::unordered_map<std::string, pending_ptr, text_hash, std::equal_to<>> requests;
        std::size_t room = 4096;  // names before those are looked for that have not come back
        exchange_clock::time_point last_sweep{};
    };
    static void sweep(names_of_set& names);

    std::vector<names_of_set> by_set_;
};

}  // namespace muster::detail
