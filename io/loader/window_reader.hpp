// A reader of a file's chunks in the order of a windowed shuffle: holds two windows, reads ahead on threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "io/dataset/sample_file.hpp"
#include "io/loader/mapped_memory.hpp"
#include "io/loader/windowed_order.hpp"

namespace muster {

/// Reads a chunk of the window a call, each announced to the kernel before. One consumer thread goes through
/// the windows in their order: the one that it is in stays in memory while the next is read. Memory: two windows.
class window_reader {
  public:
    /// Throws errc::system (no memory, no thread).
    window_reader(sample_file from, shuffle_window window, std::size_t samples, std::size_t threads);
    window_reader(window_reader const&) = delete;
    window_reader& operator=(window_reader const&) = delete;
    ~window_reader();

    /// Begins to read from window `from` on; `first_sample` is what the order's sample 0 is in the file.
    void start(windowed_order const& order, std::uint64_t first_sample, std::uint64_t from);

    /// Ends what start() began.
    void stop();

    /// Waits until window `w` is there, which becomes the one that record() knows; those before it are given up. Windows may not be
    /// gone back to. Throws errc::io or errc::invalid_data that a chunk could not be read.
    void enter(std::uint64_t w);

    /// The sample (by its number in the order) of the window that was entered last.
    std::uint8_t const* record(std::uint64_t sample) const noexcept {
        return memory_.bytes().data() + place_of_[sample / window_.chunk_samples] +
               sample % window_.chunk_samples * from_.sample_bytes();
    }

    std::size_t held_bytes() const noexcept { return memory_.bytes().size(); }

  private:
    void loop();
    void end_loops() noexcept;
    bool may_read() const;
    void read_chunk(std::uint64_t place);

    sample_file const from_;
    shuffle_window const window_;
    mapped_memory memory_;
    std::mutex mutex_;
    std::condition_variable to_readers_;
    std::condition_variable to_consumer_;
    std::optional<windowed_order> order_;
    std::uint64_t first_sample_ = 0;
    std::uint64_t current_ = 0;            ///< the window that the consumer is in
    std::uint64_t next_place_ = 0;         ///< the next chunk to read, by its place in the order
    std::size_t read_[2] = {0, 0};         ///< chunks of the two windows that are there
    std::size_t slot_bytes_;               ///< of a chunk in memory
    std::vector<std::uint64_t> place_of_;  ///< for each chunk: where in the memory it is
    std::size_t busy_ = 0;
    bool running_ = false;
    bool stop_ = false;
    std::exception_ptr failure_;
    std::vector<std::thread> threads_;
};

}  // namespace muster
