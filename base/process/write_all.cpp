#include "base/process/write_all.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"

namespace muster {

void write_all(int file, std::string_view bytes, std::string_view path, std::string_view hint) {
    while (!bytes.empty()) {
        ssize_t const written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_system("write", path, 0, hint);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

}  // namespace muster
