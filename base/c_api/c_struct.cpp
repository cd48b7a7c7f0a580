#include "base/c_api/c_struct.hpp"

#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t largest_struct = std::size_t{1} << 16;

}  // namespace

void check_c_size(std::size_t given, char const* what) {
    if (given < sizeof(std::size_t) || given > largest_struct)
        throw_error(errc::usage, "{} says that it has {} bytes; set struct_size to its sizeof", what, given);
}

void check_c_struct(void const* at, std::size_t given, std::size_t known, char const* what, int abi) {
    check_c_size(given, what);
    auto const* const bytes = static_cast<std::byte const*>(at);
    if (given > known && std::any_of(bytes + known, bytes + given, [](std::byte each) { return each != std::byte{}; }))
        throw_error(
            errc::unavailable,
            "{} has fields set that this muster (ABI {}) does not know: the program was compiled for a newer one; load that one",
            what, abi);
}

}  // namespace muster
