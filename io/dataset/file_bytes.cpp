#include "io/dataset/file_bytes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>

#include "base/process/files.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // Linux moves at most 2 GiB less a page

[[noreturn]] void fail(std::string const& path, std::string_view what, std::uint64_t offset, int code, std::string_view advice) {
    throw_error(errc::io, "{}: {} at offset {}: {} (errno {}); {}", path, what, offset, std::generic_category().message(code),
                code, advice);
}

}  // namespace

read_end read_at(int fd, std::uint64_t offset, std::span<std::byte> out) noexcept {
    std::size_t done = 0;
    while (done < out.size()) {
        ssize_t const got =
            ::pread(fd, out.data() + done, std::min(out.size() - done, most_at_once), static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return {done, errno};
        if (got == 0) break;
        done += static_cast<std::size_t>(got);
    }
    return {done, 0};
}

std::size_t read_fully(int fd, std::string const& path, std::uint64_t offset, std::span<std::uint8_t> out) {
    auto const [done, fault] = read_at(fd, offset, std::as_writable_bytes(out));
    if (fault != 0) fail(path, "read", offset + done, fault, "check the file system");
    return done;
}

void read_exactly(int fd, std::string const& path, std::uint64_t offset, std::span<std::uint8_t> out) {
    if (std::size_t const got = read_fully(fd, path, offset, out); got < out.size())
        throw_error(errc::invalid_data,
                    "{}: ends at offset {}, expected {} bytes more; it was cut short: copy or convert it again", path,
                    offset + got, out.size() - got);
}

void write_fully(int fd, std::string const& path, std::uint64_t offset, std::span<std::uint8_t const> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
        ssize_t const put =
            ::pwrite(fd, bytes.data() + done, std::min(bytes.size() - done, most_at_once), static_cast<off_t>(offset + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0)
            fail(path, "write", offset + done, put == 0 ? ENOSPC : errno,
                 put == 0 || errno == ENOSPC || errno == EDQUOT ? "free some space, or write to another file system"
                 : errno == EFBIG                               ? too_large_hint
                                                                : "check the file system");
        done += static_cast<std::size_t>(put);
    }
}

}  // namespace muster
