// A call with a deadline. Runs it on a thread of its own and stops waiting when the deadline has passed.
#pragma once

#include <functional>
#include <memory>

#include "base/units.hpp"

namespace muster::detail {

/// A call that may never come back, on a thread of its own. If it does not, the thread stays in it until the process ends: so
/// `call` must own whatever it uses, and the library that it is in must not be called any more.
class call_on_thread {
  public:
    explicit call_on_thread(std::function<void()> call);

    /// Waits for at most so long; true if it came back, and throws what it threw.
    bool wait(duration at_most);

  private:
    struct outcome;
    std::shared_ptr<outcome> outcome_;  ///< shared with the thread, which may outlive this
};

/// Runs it within `deadline`, or, if that is 0, on the calling thread, without end. True if it came back.
bool call_with_deadline(duration deadline, std::function<void()> call);

}  // namespace muster::detail
