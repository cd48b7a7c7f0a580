// The files that a conversion reads: notes their state, so that a change is seen, and their digests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster {

class communicator;

/// Files dealt out over the ranks, each file to one. All functions are collective; all ranks have the same list.
class source_files {
  public:
    source_files(std::vector<std::string> files, communicator& ranks);

    /// A number that differs where a file's name, length or time of change does.
    std::uint64_t fingerprint() const noexcept { return fingerprint_; }

    /// Reads all of them. Then lines() tells their digests.
    void compute_digests();

    /// "xxh3-128 DIGEST  BYTES  NAME" of each file of `files`, which are among these; of more than 64 one line, with the digest of
    /// the lines "DIGEST  NAME" (xxh128sum's) of all, names from the folder that `folder` names.
    std::vector<std::string> lines(std::vector<std::string> const& files, std::string const& folder) const;

    /// Throws errc::invalid_data where one has changed since the constructor.
    void require_unchanged() const;

  private:
    struct file_state {
        std::uint64_t bytes = 0;
        std::int64_t changed_ns = 0;
        std::uint64_t inode = 0;
        bool operator==(file_state const&) const = default;
    };
    static file_state state_of(std::string const& path);
    bool is_mine(std::size_t file) const;

    std::vector<std::string> files_;
    communicator& ranks_;
    std::vector<file_state> states_;  ///< of this rank's files
    std::uint64_t fingerprint_ = 0;
    std::vector<std::int64_t> digests_;  ///< three numbers a file: both halves of the digest, and the length
};

}  // namespace muster
