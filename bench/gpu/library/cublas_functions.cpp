#include "bench/gpu/library/cublas_functions.hpp"

#include <array>

namespace muster::cublas {

found_functions<functions> const& find() {
    static std::array<std::string, 2> const names{"libcublas.so.13", "libcublas.so.12"};
    static auto const found = find_functions<functions>(names, "cuBLAS");
    return found;
}

}  // namespace muster::cublas
