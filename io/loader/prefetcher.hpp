// A thread that prepares numbered items ahead of their consumer, in a ring of slots.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace muster {

/// Calls work(item, slot) for item 0, 1, … on a thread of its own, at most `slots` items ahead; an item's slot is item modulo
/// slots. The thread sleeps when the ring is full until half of it is free, so that it wakes once for several items, and never
/// spins. It takes no signals. All functions are for one consumer thread. Allocates nothing after construction.
class prefetcher {
  public:
    using work = std::function<void(std::size_t item, std::size_t slot)>;

    /// `slots` >= 2: one is the consumer's.
    prefetcher(std::size_t slots, work prepare);
    prefetcher(prefetcher const&) = delete;
    prefetcher& operator=(prefetcher const&) = delete;
    ~prefetcher();  ///< abandons and joins

    /// Begins with item 0 of `items`. What was going on must have been abandoned.
    void start(std::size_t items);

    /// Gives back the slot of the item before and waits for the next: its slot, or nothing after the last. Throws what `work`
    /// threw for this item; the run is then over.
    std::optional<std::size_t> next();

    /// Ends the run early. Afterwards `work` is not being called, and nothing it uses is in use. Nothing happens if there is no
    /// run.
    void abandon();

  private:
    void loop();
    bool may_prepare() const;

    std::size_t const slots_;
    work const prepare_;
    std::mutex mutex_;
    std::condition_variable to_worker_;
    std::condition_variable to_consumer_;
    std::size_t items_ = 0;     ///< of this run
    std::size_t prepared_ = 0;  ///< items ready or taken
    std::size_t taken_ = 0;     ///< items given to the consumer
    std::size_t released_ = 0;  ///< items whose slot is free again
    bool filling_ = true;       ///< false from when the ring was full until half of it is free
    bool busy_ = false;         ///< the worker is in work()
    bool worker_waits_ = false;
    bool consumer_waits_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::thread thread_;  // last: it uses all the others
};

}  // namespace muster
