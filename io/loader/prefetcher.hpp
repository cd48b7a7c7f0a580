// Threads that prepare numbered items ahead of their consumer, in a ring of slots.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace muster {

/// Calls work(item, slot) for item 0, 1, … on its own threads, at most `slots` items ahead; an item's slot is item modulo
/// slots. Items are begun in their order and given to the consumer in it. The threads sleep when the ring is full until half of
/// it is free, so that they wake once for several items, and never spin. They take no signals. All functions are for one consumer
/// thread. Allocates nothing after construction.
class prefetcher {
  public:
    using work = std::function<void(std::size_t item, std::size_t slot)>;

    /// `slots` >= 2: one is the consumer's. With several threads `prepare` runs on several at once, each with its own item.
    prefetcher(std::size_t slots, work prepare, std::size_t threads = 1);
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
    void end_loops() noexcept;
    bool may_prepare() const;

    std::size_t const slots_;
    work const prepare_;
    std::mutex mutex_;
    std::condition_variable to_workers_;
    std::condition_variable to_consumer_;
    std::size_t items_ = 0;     ///< of this run; after a failure those before it
    std::size_t claimed_ = 0;   ///< items that a thread has begun
    std::size_t taken_ = 0;     ///< items given to the consumer
    std::size_t released_ = 0;  ///< items whose slot is free again
    std::vector<char> ready_;   ///< for each slot: prepared and not yet taken
    bool filling_ = true;       ///< false from when the ring was full until half of it is free
    std::size_t busy_ = 0;      ///< threads in work()
    std::size_t workers_waiting_ = 0;
    bool consumer_waits_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;  ///< of item items_
    std::vector<std::thread> threads_;
};

}  // namespace muster
