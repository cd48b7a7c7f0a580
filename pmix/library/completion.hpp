// The wait, with a deadline, for callbacks of the library's threads. Internal: names PMIx types.
#pragma once

#include <pmix_common.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string_view>

#include "base/process/start_thread.hpp"
#include "base/units.hpp"

namespace muster::pmix {

/// Counts callbacks. Shared between the waiter and the callbacks, since a waiter may give up before the last one comes.
class completion : public std::enable_shared_from_this<completion> {
  public:
    static std::shared_ptr<completion> create() { return std::make_shared<completion>(); }

    /// One more callback to come: what to pass as its cookie. It must be called exactly once, or `cancel`led.
    void* expect_one();
    static void cancel(void* cookie);
    /// Has the type pmix_op_cbfunc_t.
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

/// Begins a blocking call of the library on a detached thread, so `call` must own what it uses.
template <typename Call>
std::shared_ptr<completion> call_in_thread(Call call) {
    auto done = completion::create();
    auto* cookie = done->expect_one();
    start_thread("for the PMIx library", [call = std::move(call), cookie] { completion::done(call(), cookie); }).detach();
    return done;
}

/// Runs a blocking call of the library on another thread and gives what it returned; nothing if it did not return in time.
/// The thread is then left behind, so `call` must own what it uses.
template <typename Call>
std::shared_ptr<completion> call_with_deadline(duration deadline, Call call) {
    auto done = completion::create();
    auto* cookie = done->expect_one();
    auto worker = start_thread("for the PMIx library", [call = std::move(call), cookie] { completion::done(call(), cookie); });
    if (done->wait(deadline))
        worker.join();
    else
        worker.detach();
    return done;
}

}  // namespace muster::pmix
