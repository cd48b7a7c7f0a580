#include "launch/help/version_text.hpp"

#include <fmt/format.h>

#include "base/version.hpp"
#include "pmix/library/open_library.hpp"

namespace muster {

namespace {

#if defined(__clang__)
constexpr char const* compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr char const* compiler = "GCC " __VERSION__;
#else
constexpr char const* compiler = "unknown";
#endif

}  // namespace

std::string version_text() {
    return fmt::format("muster {}\ncompiler  {}\nPMIx      {}\nhwloc     {}\nMPI       {}\n", version(), compiler,
                       pmix::library_version(), MUSTER_HWLOC_TEXT, MUSTER_MPI_TEXT);
}

}  // namespace muster
