// The text of `muster --version`: muster's version, and what it was built with.
#pragma once

#include <string>

namespace muster {

/// Lines with their ends. The first is "muster 0.1.0"; PMIx is the one that this process has loaded.
std::string version_text();

}  // namespace muster
