#include "pmix/library/open_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <pmix.h>

#include "base/error.hpp"

namespace muster::pmix {

namespace {

/// A function of version 4.2 and later.
constexpr char const* newest_function = "PMIx_Info_load";

/// Opens the library by the name that it has had since version 3. Its parts, which it opens in turn, look for its symbols among all that are loaded.
void* open_of_system() noexcept {
    return ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
}

/// The one of the portable archive: its parts are in it, and nobody else is to see its symbols.
void* open_own() noexcept {
    return ::dlopen("libmuster_pmix.so.2", RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

void throw_missing(void* library, char const* function) {
    link_map const* known = nullptr;
    std::string const file =
        ::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&known)) == 0 && known != nullptr ? known->l_name : "";
    throw error(errc::unavailable, "the PMIx library " + file + " has no " + function +
                                       "; install version 4.2 or later, or take its folder out of LD_LIBRARY_PATH");
}

void* open_library() {
    void* const of_system = open_of_system();
    if (of_system != nullptr && ::dlsym(of_system, newest_function) != nullptr) return of_system;
    char const* const message = of_system == nullptr ? ::dlerror() : nullptr;
    std::string const reason = message != nullptr ? message : "libpmix.so.2";
    if (void* const own = open_own()) {
        if (of_system != nullptr) ::dlclose(of_system);
        return own;
    }
    if (of_system != nullptr) throw_missing(of_system, newest_function);
    throw error(errc::unavailable, "cannot open the PMIx library: " + reason +
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
