// A reader of packs: reads ahead, on several threads, and hands them over in order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "io/tree/aligned_bytes.hpp"
#include "io/tree/chunk_plan.hpp"

namespace muster {

class chunk_reader;

/// How many bytes a pack has on its way: those of its pieces, and 8 for the checksum of each.
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

}  // namespace muster
