// The token of a process: random bits that only its own memory holds. Proves whose memory was read.
#pragma once

#include <cstdint>

namespace muster::shm {

/// 128 random bits, all zero if there is no token. Sent among ranks as bytes.
struct process_token {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    explicit operator bool() const noexcept { return high != 0 || low != 0; }
    bool operator==(process_token const&) const = default;
};

/// Returns the token as this process's memory holds it. It differs from what the process announces, so no copy of an
/// announcement, in whatever process and at whatever address, passes for the memory of the announcer.
constexpr process_token as_held(process_token const& announced) noexcept {
    return {~announced.high, ~announced.low};
}

/// Returns the token that this process announces, another one after fork(); none if the kernel cannot keep a forked child from
/// inheriting it (MADV_WIPEONFORK, since Linux 4.14) or gives no random bits. Thread safe; takes a few nanoseconds except for the
/// first call.
process_token own_token() noexcept;

/// Returns the address of as_held(own_token()) in this process; 0 without a token.
std::uint64_t own_token_address() noexcept;

}  // namespace muster::shm
