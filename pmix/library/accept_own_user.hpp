// The check of who connects to the PMIx library's port: callers of other users are closed before the library sees them, as are callers that say nothing.
#pragma once

namespace muster::pmix {

/// Makes the program's `accept`, which this file's source defines in place of the C library's, check each caller from now on, or
/// no more. The library trusts the user number that a caller says, and reads from one caller at a time, waiting for it. Called by
/// the server before it starts the library.
void check_callers(bool on) noexcept;

/// While one lives, `accept` waits with the callers: a library that has begun to listen refuses those whose job it was not told of yet.
struct callers_held {
    callers_held() noexcept;
    ~callers_held();
    callers_held(callers_held const&) = delete;
    callers_held& operator=(callers_held const&) = delete;
};

}  // namespace muster::pmix
