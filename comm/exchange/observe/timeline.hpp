// A timeline writes when everything happened on this rank, as a file that chrome://tracing and Perfetto open.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

namespace muster {

/// The offset of rank 0's clock: rank 0's time = this rank's + offset, within the error.
struct clock_offset {
    double offset_us = 0;
    double error_us = 0;
    bool operator==(clock_offset const&) const = default;
};

enum class trace_kind : std::uint8_t {
    negotiate,   ///< a request, from its submission until all ranks have agreed on it
    queue,       ///< a request, from the agreement until its collective begins
    pack,        ///< copies tensors into the fusion buffer
    collective,  ///< the collective of a batch
    unpack,      ///< … and out of it
    cycle,       ///< a mark: a round of negotiation has ended
};

/// An event between two times of the steady clock. `id` distinguishes requests whose times overlap.
struct trace_event {
    trace_kind kind = trace_kind::cycle;
    std::uint32_t name = 0;    ///< from intern(), of a tensor
    std::uint32_t detail = 0;  ///< from intern(), of an operation; 0 for none
    std::uint64_t id = 0;
    std::int64_t begin_ns = 0, end_ns = 0;
    std::uint64_t bytes = 0;
};

/// Chrome's trace format (JSON array, one event a line; its readers allow a missing "]", as after the death of a rank): process = rank; tracks
/// "rounds" and "collectives"; NEGOTIATE and QUEUE as asynchronous events of category "tensor". Times are microseconds of this rank's steady clock. A
/// metadata event "muster_clock" holds generation, rank, host, process and clock offset for the merge. Source: "Trace Event Format", Chromium
/// project.
///
/// add() neither allocates nor blocks: events go through a ring to a thread that writes them; those that do not fit are counted.
/// Only one thread adds; any thread may call start() and stop().
class timeline {
  public:
    timeline(int rank, int ranks, std::string host, int generation = 0);
    ~timeline();  ///< stops; errors are logged
    timeline(timeline const&) = delete;
    timeline& operator=(timeline const&) = delete;

    /// Opens FOLDER/timeline-RANK.json (rank_file.hpp) and makes the folder; stops an earlier file first. Throws errc::system.
    void start(std::string const& folder, clock_offset offset, bool mark_cycles);
    /// The same into a file of that name, whose folder exists, with Horovod's names of events: NEGOTIATE_ALLREDUCE, QUEUE,
    /// ALLREDUCE, MEMCPY_IN_FUSION_BUFFER, MEMCPY_OUT_FUSION_BUFFER, CYCLE_START.
    void start_file(std::string const& path, clock_offset offset, bool mark_cycles);
    void stop();

    bool running() const noexcept { return running_.load(std::memory_order_acquire); }
    bool marks_cycles() const noexcept { return marks_.load(std::memory_order_relaxed); }

    /// Returns a number for a name; the same for the same name.
    std::uint32_t intern(std::string_view name);

    /// Returns false if there was no room.
    bool add(trace_event const& event) noexcept;

    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  private:
    static constexpr std::size_t room = std::size_t{1} << 16;

    void open(std::string const& path, clock_offset offset, bool mark_cycles, bool as_horovod);
    void write_events();
    void drain();
    void put(std::string const& line);
    std::string line_of(trace_event const& event);

    int const rank_, ranks_, generation_;
    std::string const host_;
    std::atomic<bool> running_{false}, marks_{false}, ending_{false};
    std::atomic<std::uint64_t> head_{0}, tail_{0}, dropped_{0};
    std::vector<trace_event> ring_;
    std::mutex names_guard_;
    std::vector<std::string> names_;  // ready for JSON
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::mutex control_;
    std::condition_variable wake_;
    std::mutex wake_guard_;
    int fd_ = -1;
    bool as_horovod_ = false;
    std::string buffer_;
    std::string path_;
    std::thread writer_;
};

/// Returns nanoseconds of the steady clock, as events have them.
inline std::int64_t trace_time(std::chrono::steady_clock::time_point at) noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

// Clock readings of two ranks bound how far their clocks are apart.

/// The clocks of two ranks around one collective in which each waits for the other: before it starts and after it has ended, in
/// nanoseconds.
struct clock_reading {
    std::int64_t before_there = 0, after_there = 0;  ///< rank 0
    std::int64_t before_here = 0, after_here = 0;    ///< this rank
};

/// Returns the middle of the bounds that hold in every reading: what starts there ends later here, and the other way round. The
/// error is half their distance. Without readings both are zero. Pure.
clock_offset estimate_offset(std::span<clock_reading const> readings) noexcept;

}  // namespace muster
