// The token of a process: random bits that only its own memory holds. Proves whose memory was read.
#pragma once

#include <cstdint>

namespace muster::shm {

/// 128 random bits. All zero: none. Sent among ranks as bytes.
struct process_token {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    explicit operator bool() const noexcept { return high != 0 || low != 0; }
    bool operator==(process_token const&) const = default;
};

/// As this process's memory holds it: not as it is announced, so that no copy of an announcement, in whatever process and at
/// whatever address, passes for the memory of who announced it.
constexpr process_token as_held(process_token const& announced) noexcept {
    return {~announced.high, ~announced.low};
}

/// What this process announces: another one after fork(), and none where the kernel cannot keep a forked child from inheriting
/// it (MADV_WIPEONFORK, since Linux 4.14) or gives no random bits. Thread safe, a few nanoseconds except for the first call.
process_token own_token() noexcept;

/// Where as_held(own_token()) lies in this process; 0 if nowhere.
std::uint64_t own_token_address() noexcept;

}  // namespace muster::shm
