// Waits of a rendezvous, up to a time of the steady clock.
#pragma once

namespace muster::shm {

/// Rank 0, if it is not stopped, has this long to answer a rank whose deadline has passed; and it waits this long for ranks that
/// come after the rendezvous has failed.
inline constexpr double grace_s = 1.0;

/// Of the steady clock, in seconds.
double now_s();

/// For poll(): at most 1000 s, -1 (no end) for infinity.
int milliseconds_until(double when);

/// False if nothing came by then. Throws errc::system.
bool wait_readable(int socket, double until);

}  // namespace muster::shm
