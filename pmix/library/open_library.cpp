#include "pmix/library/open_library.hpp"

#include <dlfcn.h>
#include <pmix.h>

#include "base/error.hpp"

namespace muster::pmix {

namespace {

/// Its name since version 3. Its own parts, which it opens in turn, look for its symbols among all that are loaded.
void* open_it() noexcept {
    return ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace

void* open_library() {
    if (void* const handle = open_it()) return handle;
    char const* const reason = ::dlerror();
    throw error(errc::unavailable, std::string("cannot open the PMIx library: ") + (reason != nullptr ? reason : "libpmix.so.2") +
                                       "; install PMIx (Debian: libpmix2), or name its folder in LD_LIBRARY_PATH");
}

std::string library_version() {
    // "OpenPMIx 4.2.2, repo rev: …": the second word is the version.
    std::string const text = ::PMIx_Get_version();
    auto const start = text.find_first_of("0123456789");
    if (start == std::string::npos) return text;
    return text.substr(start, text.find_first_of(", ", start) - start);
}

}  // namespace muster::pmix
