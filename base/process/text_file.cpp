#include "base/process/text_file.hpp"

#include <fstream>
#include <iterator>

namespace muster {

std::string read_text_file(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace muster
