#include "base/process/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"

namespace muster {

std::string read_text_file(std::string const& path, std::size_t most_bytes) {
    unique_fd const file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));  // a pipe is not waited for
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
    if (static_cast<std::uintmax_t>(found.st_size) > most_bytes) return {};
    std::string text(std::max<std::size_t>(static_cast<std::size_t>(found.st_size) + 1, 4096),
                     '\0');  // a file of /proc says that it has no bytes
    std::size_t size = 0;
    for (;;) {
        auto const count = ::read(file.get(), text.data() + size, text.size() - size);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return {};  // a process of /proc that has ended meanwhile
        size += static_cast<std::size_t>(count);
        if (count == 0 || size > most_bytes) break;
        if (size == text.size()) text.resize(2 * size);
    }
    text.resize(size > most_bytes ? 0 : size);
    return text;
}

void write_all(int file, std::string_view bytes, std::string_view path, std::string_view hint) {
    while (!bytes.empty()) {
        ssize_t const written = ::write(file, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) throw_system("write", path, 0, errno == EFBIG ? too_large_hint : hint);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
}

bool path_exists(std::filesystem::path const& path) noexcept {
    std::error_code fault;
    return std::filesystem::exists(path, fault);
}

bool is_folder(std::filesystem::path const& path) noexcept {
    std::error_code fault;
    return std::filesystem::is_directory(path, fault);
}

bool is_plain_file(std::filesystem::path const& path) noexcept {
    std::error_code fault;
    return std::filesystem::is_regular_file(path, fault);
}

std::vector<std::filesystem::path> folder_entries(std::filesystem::path const& folder) {
    std::vector<std::filesystem::path> entries;
    std::error_code fault;
    for (std::filesystem::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault))
        entries.push_back(at->path());
    return entries;
}

std::string absolute_path(std::string const& wanted) {
    std::error_code fault;
    auto const path = std::filesystem::absolute(wanted, fault);
    if (fault) throw_error(errc::not_found, "{}: {}; change to a folder that exists", wanted, fault.message());
    auto const normal = path.lexically_normal();
    return normal.has_filename() || !normal.has_relative_path() ? normal : normal.parent_path();
}

}  // namespace muster
