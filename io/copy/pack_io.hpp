// Packs on their way: a reader that reads ahead on several threads, and writers for packs that arrive in slices.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "io/copy/chunk_io.hpp"
#include "io/copy/pack_exchange.hpp"
#include "io/tree/aligned_bytes.hpp"
#include "io/tree/chunk_plan.hpp"

namespace muster {

/// Returns how many bytes a pack has on its way: those of its pieces, and 8 for the checksum of each.
std::uint64_t sent_bytes(pack const& what) noexcept;

class pack_reader {
  public:
    /// Packs `first`, `first + step`, … of `packs`. The list and the packs must live longer.
    pack_reader(file_list const& list, std::span<pack const> packs, std::size_t first, std::size_t step, int threads,
                std::atomic<std::uint64_t>& bytes_read);
    ~pack_reader();
    pack_reader(pack_reader const&) = delete;
    pack_reader& operator=(pack_reader const&) = delete;

    /// The bytes of the next pack with its checksums behind them; valid until the next call. Throws what reading it threw.
    std::span<std::byte const> next();

  private:
    struct slot {
        aligned_bytes memory;
        std::size_t bytes = 0;
        bool full = false;
        std::exception_ptr failure;
    };
    void run();
    void read(pack const& what, slot& into, chunk_reader& source);

    file_list const& list_;
    std::span<pack const> packs_;
    std::size_t first_, step_;
    std::atomic<std::uint64_t>& bytes_read_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<slot> slots_;
    std::size_t taken_ = 0;      // by threads
    std::size_t delivered_ = 0;  // and given back
    bool ending_ = false;
    std::vector<std::jthread> threads_;
};

// Writers of packs that arrive in slices: write the chunks that are wanted here, and compare their checksums.

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
    /// The first failure so far, or null. What comes after one is not written.
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
