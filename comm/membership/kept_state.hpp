// The kept state of a rank: two copies in memory that outlives the process, of which one is always whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"

namespace muster {

/// A file of memory without a name, for the parts of all ranks of a node. It takes the memory that is written. Throws errc::system.
unique_fd make_kept_memory();

/// A commit overwrites the older copy, so that whoever dies in it leaves the newer one. Not thread safe.
class kept_state {
  public:
    struct copy {
        std::uint64_t step = 0;
        std::span<std::byte const> bytes;  ///< until the next commit
    };

    /// `place`: the value of elastic::kept_state_variable, "PART:FILE", a rank's part of the file that the parent of its launcher holds to the end of
    /// the run, over all restarts. The user's other processes can open it, other users cannot. Empty: memory of this process alone. Throws errc::usage,
    /// errc::system.
    explicit kept_state(std::string_view place = {});
    ~kept_state();
    kept_state(kept_state const&) = delete;
    kept_state& operator=(kept_state const&) = delete;

    /// Copies `pieces`, each to a multiple of 64 bytes, with a checksum. Costs little more than memcpy from the third call on, once the memory is
    /// there. Throws errc::system where memory is short; the newer copy is then still whole.
    void commit(std::uint64_t step, std::span<std::span<std::byte const> const> pieces);

    /// The whole copies, the newest first. Reads all of them.
    std::vector<copy> find();

    static std::size_t padded(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  private:
    struct header;
    struct half {
        std::byte* at = nullptr;
        std::size_t bytes = 0;  ///< that are mapped
    };
    header& map(std::size_t which, std::size_t bytes);
    header const* find_whole(std::size_t which);
    std::uint64_t place_of(std::size_t which) const noexcept;

    unique_fd file_;
    std::uint64_t from_ = 0;
    std::array<half, 2> halves_;
    std::uint64_t commits_ = 0;  ///< by all processes that have had this part
    std::size_t newest_ = 1;
};

}  // namespace muster
