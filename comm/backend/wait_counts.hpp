// Counts of how long this rank waits for other ranks, for `muster top` and the end of a run.
#pragma once

#include <memory>
#include <string>

#include "base/units.hpp"
#include "pmix/wait_page.hpp"

namespace muster {

/// Owns the mapping of the rank's page. Thread safe.
class wait_counts {
  public:
    /// Returns null where nobody watches (`path` is empty), or the page cannot be reached, as from a container: that is no error of the program.
    static std::shared_ptr<wait_counts> open(std::string const& path) noexcept;

    ~wait_counts();
    wait_counts(wait_counts const&) = delete;
    wait_counts& operator=(wait_counts const&) = delete;

    /// Adds one wait; `last`: the rank of the world that came last, -1: not known.
    void add(duration waited, int last) noexcept;

  private:
    explicit wait_counts(wait_page& page) noexcept : page_(page) {}
    wait_page& page_;
};

}  // namespace muster
