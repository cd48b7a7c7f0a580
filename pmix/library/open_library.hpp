// The opening of the PMIx library at run time, for the program muster and libmuster_comm.so, which most often do without it.
#pragma once

#include <string>

namespace muster::pmix {

// The version of the PMIx library that this process has loaded.

/// "4.2.2", from the library that was loaded, not the headers it was built with.
std::string library_version();

/// The library's handle, for dlsym; stays open: the system's, or the one that came with muster where the system has none of
/// version 4.2 or later. Throws errc::unavailable where neither is there. Safe from any thread.
void* open_library();

/// Throws errc::unavailable: the library has no such function.
[[noreturn]] void throw_missing(void* library, char const* function);

}  // namespace muster::pmix
