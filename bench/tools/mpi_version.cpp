#include "bench/tools/mpi_version.hpp"

#include <mpi.h>

#include <array>
#include <string_view>

namespace muster {

std::string mpi_library_version() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
    std::string_view const whole(text.data());
    return std::string(whole.substr(0, whole.find_first_of(",\n")));
}

}  // namespace muster
