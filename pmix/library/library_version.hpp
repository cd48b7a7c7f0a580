// The version of the PMIx library that this process has loaded.
#pragma once

#include <string>

namespace muster::pmix {

/// "4.2.2", from the library that was loaded, not the headers it was built with.
std::string library_version();

}  // namespace muster::pmix
