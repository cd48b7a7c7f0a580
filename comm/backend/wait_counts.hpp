// Counts of how long this rank waits for other ranks, and for data, for `muster top` and the end of a run.
#pragma once

#include <memory>
#include <string>

#include "base/units.hpp"
#include "pmix/wait_page.hpp"

namespace muster {

/// Owns the mapping of the rank's page. Thread safe.
class wait_counts {
  public:
    enum class use { collectives, data };

    /// Returns null where nobody watches (`path` is empty), or the page cannot be reached, as from a container: that is no error of the program.
    static std::shared_ptr<wait_counts> open(std::string const& path, use what = use::collectives) noexcept;

    ~wait_counts();
    wait_counts(wait_counts const&) = delete;
    wait_counts& operator=(wait_counts const&) = delete;

    /// Adds time of a wait that goes on, or has ended; `awaited`: the rank of the world that has not come, or came last, -1: not known.
    void add_time(duration waited, int awaited) noexcept;
    /// Counts a wait that has ended.
    void add_wait(int last) noexcept;
    /// Counts a batch of data, and the time for which the program waited for it.
    void add_batch(duration waited) noexcept;

  private:
    explicit wait_counts(wait_page& page) noexcept : page_(page) {}
    wait_page::other_rank* place_of(int rank) noexcept;
    wait_page& page_;
};

}  // namespace muster
