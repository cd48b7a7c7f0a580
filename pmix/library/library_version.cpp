#include "pmix/library/library_version.hpp"

#include <pmix.h>

namespace muster::pmix {

std::string library_version() {
    // "OpenPMIx 4.2.2, repo rev: …": the second word is the version.
    std::string const text = ::PMIx_Get_version();
    auto const start = text.find_first_of("0123456789");
    if (start == std::string::npos) return text;
    return text.substr(start, text.find_first_of(", ", start) - start);
}

}  // namespace muster::pmix
