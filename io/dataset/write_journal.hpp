// The journal of a file being written: locks the output against a second writer and remembers which blocks are done.
//
// It lies in the folder of the output as OUT.partial.journal:
//   offset 0     text, NUL to 4096: "muster-journal 1", then the lines "identity TEXT" and "holder HOST PID"
//   offset 4096  a record of 32 bytes for each block: checksum of its samples, of its labels, its encoded bytes (0 where it lies
//                in the file as it is), and XXH3-64 of these 24 bytes and the block's number; all least significant byte first
// A record that is all zero, torn or another's does not match its own checksum: that block is written again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace muster {

struct block_record {
    std::uint64_t images = 0;
    std::uint64_t labels = 0;
    std::uint64_t encoded_bytes = 0;
    bool operator==(block_record const&) const = default;
};

class write_journal {
  public:
    /// Serves the rank that writes on behalf of all: creates the journal of `output` or opens the one that is there, and locks it.
    /// Throws errc::unavailable, naming host and process, where another writer holds it; errc::system.
    static write_journal lock(std::string const& output);
    /// Serves any other rank: opens what lock() made.
    static write_journal join(std::string const& output);
    static std::string path_of(std::string const& output);

    write_journal() = default;

    /// The identity in the header; empty without a header.
    std::string identity() const;
    /// Empties the journal and writes the header.
    void begin(std::string const& identity);

    void put(std::uint64_t block, block_record const& record);
    std::optional<block_record> get(std::uint64_t block) const;

  private:
    write_journal(std::string path, unique_fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    void write_header(std::string const& identity);
    std::string header() const;

    std::string path_;
    unique_fd fd_;
};

}  // namespace muster
