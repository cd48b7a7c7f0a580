#include "base/process/files.hpp"

#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/error.hpp"

namespace muster {

std::string read_text_file(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();  // iterators throw where reading fails: a process of /proc that ends meanwhile, a folder
    return text.str();
}

void write_all(int file, std::string_view bytes, std::string_view path, std::string_view hint) {
    while (!bytes.empty()) {
        ssize_t const written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_system("write", path, 0, hint);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace muster
