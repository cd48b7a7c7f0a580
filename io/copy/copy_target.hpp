// The target folder of a copy: knows what is there already, takes new files under temporary names and puts them in their places.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "io/tree/chunk_plan.hpp"
#include "io/tree/manifest.hpp"

namespace muster {

/// The folder in the state folder that has a file for each folder that was unpacked from an archive.
inline constexpr char unpacked_folder_name[] = "unpacked";

/// Holds what of a list is in the target already.
struct copy_presence {
    enum class place : std::uint8_t { missing, known, finished_before };  ///< known: the manifest has it
    std::vector<std::uint8_t> needed;                                     ///< by chunk: 1 if it is to be written
    std::vector<std::uint64_t> checksums;                                 ///< by chunk, of those that have been written
    std::vector<place> in_place;                                          ///< by entry
    std::vector<std::uint8_t> left_out;  ///< by entry: 1 if it changed while it was read, and is not to be placed

    bool everything() const noexcept;  ///< everything is there and in the manifest
    /// Marks all chunks of a file as not needed.
    void skip(chunk_plan const& plan, std::size_t file);
};

/// Says how far files that seem to be there are trusted: those with the size and time that the manifest says, or only those whose
/// contents have its checksums.
enum class copy_check { fast, full };

/// Another process works on the folder (errc::io).
class target_in_use : public error {
  public:
    explicit target_in_use(std::string const& message) : error(errc::io, message) {}
};

/// The folder DST with its state in DST/.muster-stage: manifest, journal, lock and `incoming`, where files grow. One process at a
/// time works on it. All functions throw errc::system; record() alone is thread safe.
class copy_target {
  public:
    /// Makes the folder and takes its lock. Throws errc::io if it is another user's, target_in_use. With
    /// `look_only` nothing is made or locked, and a folder that is not there is empty.
    copy_target(std::string path, std::string state_name, bool look_only);

    std::string const& path() const noexcept { return path_; }
    int root() const noexcept { return root_.get(); }
    int state() const noexcept { return state_.get(); }
    int incoming() const noexcept { return incoming_.get(); }

    /// Reads chunks that a killed copy has left and compares them, on `threads` threads. Throws errc::usage where a folder stands
    /// in the place of a file, or the other way round.
    copy_presence find(file_list const& list, chunk_plan const& plan, copy_check how, int threads, bool replaces = true) const;

    /// Throws errc::io if what is missing needs more bytes or names than the file system has free.
    void refuse_lack_of_space(file_list const& list, chunk_plan const& plan, copy_presence const& have) const;

    /// Makes folders, links and large files in `incoming`, and the journal.
    void begin(file_list const& list, chunk_plan const& plan, copy_presence const& have);

    /// Two writers at a time for each large file: the file system lets in one, the second spins for its turn and has it without
    /// being woken, and more would only spin.
    class turn {
      public:
        turn(copy_target const& target, std::size_t file) : free_((*target.turns_)[file % target.turns_->size()].free) {
            free_.acquire();
        }
        ~turn() { free_.release(); }
        turn(turn const&) = delete;
        turn& operator=(turn const&) = delete;

      private:
        std::counting_semaphore<2>& free_;
    };

    /// Notes chunks as written.
    void record(std::span<journal_record const> records) const { journal_->append(records); }

    /// All chunks are written: times and modes, then everything to its place by renaming, then the manifest. With `sync` what was
    /// written is on the disk before it is placed, and the places are before this returns.
    void finish(file_list const& list, chunk_plan const& plan, copy_presence const& have, bool sync);

    /// Files in the state folder by which nodes see whether they share it.
    void make_mark(std::string const& name) const;
    std::size_t count_marks(std::string_view prefix) const;
    void drop_mark(std::string const& name) const;

    /// Removes what a copy that was killed has left.
    void tidy();

  private:
    void open_state(bool look_only);
    void drop_strangers(file_list const& list);
    void place(file_list const& list, copy_presence const& have) const;
    void write_manifest(file_list const& list, chunk_plan const& plan, copy_presence const& have);

    std::string path_, state_name_;
    unique_fd root_, state_, lock_, incoming_;
    manifest manifest_;
    bool manifest_damaged_ = false;
    std::optional<journal_contents> before_;
    std::optional<journal> journal_;
    struct writers {
        std::counting_semaphore<2> free{2};
    };
    std::unique_ptr<std::array<writers, 64>> turns_ = std::make_unique<std::array<writers, 64>>();
};

/// Opens the folder `path`, made if `make`. Throws errc::io if it is another user's or a link; empty if it is not there.
unique_fd open_own_folder(std::string const& path, bool make);

/// Reads the manifest in a state folder, or returns an empty one. Throws errc::invalid_data if it is damaged.
manifest read_manifest(int state, std::string_view folder);

/// Returns whether a chunk of an open file has this checksum. Throws errc::system, naming `path`.
bool chunk_matches(int file, std::uint64_t offset, std::uint64_t length, std::uint64_t checksum, std::span<std::byte> buffer,
                   std::string_view path);

}  // namespace muster
