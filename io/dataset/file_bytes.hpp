// Bytes at a place of a file: reads and writes all of them, or says which could not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace muster {

/// Says how many bytes were read, and why no more: the errno of what failed, 0 at the end of the file or of the memory.
struct read_end {
    std::size_t bytes = 0;
    int fault = 0;
};

/// Reads until `out` is full or the file ends.
read_end read_at(int fd, std::uint64_t offset, std::span<std::byte> out) noexcept;

/// Reads until `out` is full or the file ends; returns how many. Throws errc::io naming `path` and the offset.
std::size_t read_fully(int fd, std::string const& path, std::uint64_t offset, std::span<std::uint8_t> out);

/// The same, and errc::invalid_data where the file ends before.
void read_exactly(int fd, std::string const& path, std::uint64_t offset, std::span<std::uint8_t> out);

/// Writes all. Throws errc::io naming `path`, the offset and, on a full file system, what to do.
void write_fully(int fd, std::string const& path, std::uint64_t offset, std::span<std::uint8_t const> bytes);

}  // namespace muster
