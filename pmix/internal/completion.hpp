// Waiting, with a deadline, for callbacks of the library's threads. Internal: names PMIx types.
#pragma once

#include <pmix_common.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/units.hpp"

namespace muster::pmix {

/// Counts callbacks. Shared between the waiter and the callbacks, since a waiter may give up before the last one comes.
class completion : public std::enable_shared_from_this<completion> {
  public:
    static std::shared_ptr<completion> create() { return std::make_shared<completion>(); }

    /// One more callback to come: what to pass as its cookie. It must be called exactly once, or `cancel`led.
    void* expect_one();
    static void cancel(void* cookie);
    /// As pmix_op_cbfunc_t.
    static void done(pmix_status_t status, void* cookie);

    /// True once all have come; false after `deadline`.
    bool wait(duration deadline);
    /// The first failure among them, or success.
    pmix_status_t status();
    /// Waits; throws errc::timeout, or library_error, naming `call`.
    void wait_or_throw(duration deadline, std::string_view call);

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    int pending_ = 0;
    pmix_status_t status_ = PMIX_SUCCESS;
};

}  // namespace muster::pmix
