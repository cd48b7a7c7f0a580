#include "bench/gpu/library/cudnn_functions.hpp"

#include <array>

namespace muster::cudnn {

found_functions<functions> const& find() {
    static std::array<std::string, 2> const names{"libcudnn.so.9", "libcudnn.so.8"};
    static auto const found = find_functions<functions>(names, "cuDNN");
    return found;
}

}  // namespace muster::cudnn
