// A deadline for calls that have none.
#pragma once

#include <functional>
#include <memory>

#include "base/units.hpp"

namespace muster::detail {

/// A call that may never come back, on a thread of its own. If it does not, the thread stays in it until the process ends: so
/// `call` must own whatever it uses, and the library that it is in must not be called any more.
class blocking_call {
  public:
    explicit blocking_call(std::function<void()> call);

    /// Waits for at most so long; true if it came back, and throws what it threw.
    bool wait(duration at_most);

  private:
    struct outcome;
    std::shared_ptr<outcome> outcome_;  ///< shared with the thread, which may outlive this
};

/// Runs it within `deadline`, or, if that is 0, on the calling thread, without end. True if it came back.
bool came_back(duration deadline, std::function<void()> call);

}  // namespace muster::detail
