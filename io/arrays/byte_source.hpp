// The bytes of a file, plain or gzip-compressed, or of a part of it: detects by the contents, never by the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/unique_fd.hpp"

namespace muster {

/// Opens a regular file for reading and tells its length. Throws errc::not_found or errc::system for one that cannot be opened,
/// errc::invalid_data for a folder, pipe or device.
unique_fd open_regular(std::string const& path, std::uint64_t& bytes);

/// An entry of an archive.
struct file_region {
    std::string path;
    std::string name;  ///< of the entry
    std::uint64_t offset = 0;
    std::uint64_t stored_bytes = 0;
    std::uint64_t bytes = 0;  ///< of its contents
    std::uint32_t crc = 0;    ///< CRC-32 of its contents; checked where it is deflated
    bool deflated = false;
    bool operator==(file_region const&) const = default;
};

/// A stream of bytes from a regular file, in constant memory. Not thread safe. Errors are errc::not_found (no such file),
/// errc::io, and errc::invalid_data for a damaged gzip stream, all naming the file and the offset.
class byte_source {
  public:
    explicit byte_source(std::string path);
    explicit byte_source(file_region const& region);
    byte_source(byte_source&&) noexcept;
    byte_source& operator=(byte_source&&) noexcept;
    ~byte_source();

    std::string const& path() const noexcept { return path_; }
    std::string name() const;  ///< the path, and of an archive the entry, for messages
    bool compressed() const noexcept { return inflater_ != nullptr; }
    std::uint64_t file_bytes() const noexcept {
        return file_bytes_;
    }                                                          ///< the length of the file itself, or where the region ends
    std::uint64_t offset() const noexcept { return offset_; }  ///< of the next byte, in the uncompressed stream

    /// The length of the uncompressed stream; nothing if it is gzip, since a gzip file does not hold it reliably.
    std::optional<std::uint64_t> size() const noexcept;

    /// The most bytes that the stream can hold: the size, or what gzip can make of the file at best (1032 times its length).
    std::uint64_t size_limit() const noexcept;

    /// Fills `out` as far as there are bytes; returns how many, fewer than asked only at the end.
    std::size_t read(std::span<std::uint8_t> out);

    /// Goes on by `bytes` (a compressed stream is inflated and dropped); returns how many, fewer only at the end.
    std::uint64_t skip(std::uint64_t bytes);

  private:
    struct inflater;
    std::size_t read_plain(std::span<std::uint8_t> out);
    std::size_t read_compressed(std::span<std::uint8_t> out);

    std::string path_;
    std::uint64_t file_bytes_ = 0;
    unique_fd fd_;  // opening it sets file_bytes_
    std::optional<file_region> region_;
    std::uint64_t file_offset_ = 0;  ///< of the next byte to read from the file
    std::uint64_t offset_ = 0;
    std::unique_ptr<inflater> inflater_;
};

}  // namespace muster
