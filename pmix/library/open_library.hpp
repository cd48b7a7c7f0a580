// The opening of the PMIx library at run time, for the program muster, which most often does without it.
#pragma once

#include <string>

namespace muster::pmix {

// The version of the PMIx library that this process has loaded.

/// "4.2.2", from the library that was loaded, not the headers it was built with.
std::string library_version();

/// The library's handle, for dlsym; stays open. Throws errc::unavailable where it is not there. Safe from any thread.
void* open_library();

}  // namespace muster::pmix
