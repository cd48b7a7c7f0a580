#include "base/process/text_file.hpp"

#include <fstream>
#include <sstream>

namespace muster {

std::string read_text_file(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();  // iterators throw where reading fails: a process of /proc that ends meanwhile, a folder
    return text.str();
}

}  // namespace muster
