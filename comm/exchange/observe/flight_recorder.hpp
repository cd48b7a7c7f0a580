// A flight recorder keeps a rank's last operations, for a look after a failure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/trace/flight_dump.hpp"
#include "comm/exchange/request/exchange_request.hpp"

namespace muster {

/// A ring of the last 1,024 operations, which sessions record. Thread safe; nothing allocates or blocks, except during a copy.
class flight_recorder {
  public:
    static constexpr std::size_t depth = 1024;
    static constexpr std::size_t longest_name = 79;  ///< bytes kept of a name

    /// Records for many operations at once, with one lock and one reading of the clock. Other threads wait meanwhile.
    class session {
      public:
        explicit session(flight_recorder& of) noexcept;
        /// Records the start of an operation. Returns the argument for end().
        std::uint64_t begin(int set, std::uint64_t sequence, exchange_kind kind, std::string_view name,
                            std::uint64_t bytes) noexcept;
        void end(std::uint64_t which) noexcept;

      private:
        flight_recorder& of_;
        std::unique_lock<std::mutex> lock_;
        std::int64_t now_us_;
    };

    /// Returns the records, the oldest first.
    std::vector<flight_record> records() const;

  private:
    struct slot {
        std::uint64_t sequence = 0, bytes = 0;
        std::int64_t started_us = 0, finished_us = 0;
        int set = 0;
        exchange_kind kind = exchange_kind::barrier;
        std::uint8_t name_size = 0;
        std::array<char, longest_name> name{};
    };

    mutable std::mutex guard_;
    std::uint64_t next_ = 0;
    std::array<slot, depth> ring_{};
};

}  // namespace muster
