// Keeps what ranks were last seen doing, to show it when the scheduler ends them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "launch/system/event_loop.hpp"
#include "launch/watch/rank_table.hpp"

namespace muster {

/// A scheduler asks every process of a job to end, and ranks that hang are gone before the launcher can inspect them. So it
/// inspects silent ranks from time to time, less and less often, and once just before the job's time is up. Used from the loop's
/// thread.
class last_look {
  public:
    struct supervision {
        std::function<bool()> active;  ///< ranks run and are not ending
        /// Inspects all ranks and calls `then`, at once or within some seconds.
        std::function<void(std::function<void(std::vector<rank_row> const&)> then)> inspect;
    };
    /// `ends_at`: when the job's time is up, if that is known. `loop` must outlive it.
    last_look(event_loop& loop, std::optional<std::chrono::system_clock::time_point> ends_at, supervision run)
        : loop_(loop), ends_at_(ends_at), run_(std::move(run)) {}

    /// Begins to inspect ranks.
    void start();
    /// Notes that a rank has written something.
    void note_output() noexcept { wrote_ = true; }
    /// Returns these rows, with the last inspection in place of ranks that have ended since; none if no rank was seen.
    std::vector<rank_row> complete(std::vector<rank_row> const& rows) const;

  private:
    void look();
    void look_if_silent();

    event_loop& loop_;
    std::optional<std::chrono::system_clock::time_point> ends_at_;
    supervision run_;
    bool wrote_ = false;  ///< a rank has written since the last check
    duration pause_{0};
    std::vector<rank_row> rows_;
    event_loop::clock::time_point seen_at_;
};

}  // namespace muster
