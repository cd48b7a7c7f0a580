// Writers of packs that arrive in slices: write the chunks that are wanted here, and compare their checksums.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "io/copy/pack_exchange.hpp"

namespace muster {

/// Some of the bytes of one pack. The slices of a pack come one after another.
struct pack_slice {
    std::size_t pack = 0;
    std::span<std::byte const> bytes;
    std::shared_ptr<void const> buffer;  ///< keeps the bytes until they are written
};

class pack_writers {
  public:
    explicit pack_writers(exchange_work const& work);
    ~pack_writers();
    pack_writers(pack_writers const&) = delete;
    pack_writers& operator=(pack_writers const&) = delete;

    /// Slices of one pack go to one thread, in order. Does not wait.
    void put(pack_slice slice);
    /// The first failure so far; null if there is none. What comes after one is not written.
    std::exception_ptr failure();
    /// Waits until all is written; throws the first failure.
    void finish();

  private:
    struct queue {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<pack_slice> slices;
        bool ended = false;
    };
    void run(queue& mine);
    void end_queues();

    exchange_work const& work_;
    std::vector<std::unique_ptr<queue>> queues_;
    std::mutex mutex_;
    std::exception_ptr failure_;
    std::vector<std::jthread> threads_;
};

}  // namespace muster
