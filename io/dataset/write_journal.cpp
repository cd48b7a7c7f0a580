#include "io/dataset/write_journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/open_output_file.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/file_bytes.hpp"

namespace muster {

namespace {

constexpr std::size_t header_bytes = 4096;
constexpr std::size_t record_bytes = 32;
constexpr std::string_view magic = "muster-journal 1\n";

std::string own_host() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    return name.data();
}

/// The value of a line "KEY VALUE" of the header.
std::string line_of(std::string const& header, std::string_view key) {
    if (!header.starts_with(magic)) return "";
    for (std::string_view const line : split(header, '\n'))
        if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
            return without_controls(line.substr(key.size() + 1));
    return "";
}

/// "host h17, process 4711".
std::string holder_of(std::string const& header) {
    std::string const holder = line_of(header, "holder");
    std::size_t const space = holder.rfind(' ');
    if (space == std::string::npos) return "a process that did not say which";
    return fmt::format("host {}, process {}", holder.substr(0, space), holder.substr(space + 1));
}

/// Returns whether the holder is gone. Where the file system has no locks, muster can see that only of a process of this host.
bool is_gone(std::string const& holder) {
    std::size_t const space = holder.rfind(' ');
    if (space == std::string::npos) return true;
    auto const process = parse_integer(std::string_view(holder).substr(space + 1));
    return process && holder.substr(0, space) == own_host() && ::kill(static_cast<pid_t>(*process), 0) != 0 && errno == ESRCH;
}

std::array<std::uint8_t, record_bytes> encode(std::uint64_t block, block_record const& record) {
    std::array<std::uint64_t, 4> words{record.images, record.labels, record.encoded_bytes, block};
    words[3] = xxh3_64(std::as_bytes(std::span(words)));
    std::array<std::uint8_t, record_bytes> bytes;
    std::memcpy(bytes.data(), words.data(), record_bytes);
    return bytes;
}

}  // namespace

std::string write_journal::path_of(std::string const& output) {
    return output + ".partial.journal";
}

write_journal write_journal::lock(std::string const& output) {
    std::string const path = path_of(output);
    for (;;) {
        auto fd = open_output_file(path, "check that its folder exists and is writable", if_there::kept);
        write_journal journal(path, std::move(fd));
        bool held = ::flock(journal.fd_.get(), LOCK_EX | LOCK_NB) != 0;
        if (held && errno != EWOULDBLOCK) {  // no locks here: what the journal says must do
            std::string const holder = line_of(journal.header(), "holder");
            held = !holder.empty() && !is_gone(holder);
        }
        if (held)
            throw_error(errc::unavailable,
                        "{}: is being written by another conversion ({}); wait for it, or choose another name (if that process "
                        "is no more, remove {})",
                        output, holder_of(journal.header()), path);
        // The one that held it may have ended and removed the file between the two calls.
        struct stat opened {};
        struct stat named {};
        if (::fstat(journal.fd_.get(), &opened) != 0) throw_system("fstat", path);
        if (::stat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) continue;
        journal.write_header(journal.identity());
        return journal;
    }
}

write_journal write_journal::join(std::string const& output) {
    std::string const path = path_of(output);
    unique_fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd) throw_system("open", path, 0, "give an output on a file system that all ranks share");
    return {path, std::move(fd)};
}

std::string write_journal::header() const {
    std::string text(header_bytes, '\0');
    text.resize(read_fully(fd_.get(), path_, 0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
    return text.substr(0, text.find('\0'));
}

std::string write_journal::identity() const {
    return line_of(header(), "identity");
}

void write_journal::begin(std::string const& identity) {
    if (::ftruncate(fd_.get(), 0) != 0) throw_system("ftruncate", path_);
    write_header(identity);
}

void write_journal::write_header(std::string const& identity) {
    std::string text = fmt::format("{}identity {}\nholder {} {}\n", magic, identity, own_host(), ::getpid());
    text.resize(header_bytes, '\0');
    write_fully(fd_.get(), path_, 0, {reinterpret_cast<std::uint8_t const*>(text.data()), text.size()});
}

void write_journal::put(std::uint64_t block, block_record const& record) {
    write_fully(fd_.get(), path_, header_bytes + block * record_bytes, encode(block, record));
}

std::optional<block_record> write_journal::get(std::uint64_t block) const {
    std::array<std::uint8_t, record_bytes> bytes{};
    if (read_fully(fd_.get(), path_, header_bytes + block * record_bytes, bytes) < bytes.size()) return std::nullopt;
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data(), record_bytes);
    block_record const record{words[0], words[1], words[2]};
    if (encode(block, record) != bytes) return std::nullopt;
    return record;
}

}  // namespace muster
