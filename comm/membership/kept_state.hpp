// The kept state of a rank holds copies in memory that outlives the process; one of them is always whole.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "comm/membership/kept_slots.hpp"
#include "pmix/kept_layout.hpp"

namespace muster {

/// A commit overwrites the oldest copy, so a process that dies in it leaves the newer one. There are two copies, and up to two more while a keeper sends
/// some to the next node. Not thread safe.
class kept_state {
  public:
    struct copy {
        std::uint64_t step = 0;
        std::span<std::byte const> bytes;  ///< valid until the next commit
    };

    /// `place` is the value of elastic::kept_state_variable, "PART:FILE": this rank's part of the file that the node's keeper, or the parent of its
    /// launcher, holds to the end of the run, over all restarts. The user's other processes can open it, other users cannot. Without `place`, or if the file
    /// is not there any more (the node's keeper is lost), the copies lie in memory of this process alone. Throws errc::usage, errc::system.
    explicit kept_state(std::string_view place = {});
    ~kept_state();
    kept_state(kept_state const&) = delete;
    kept_state& operator=(kept_state const&) = delete;

    /// Copies `pieces`, each padded to a multiple of 64 bytes, with a checksum. Costs little more than memcpy from the third call on, when the
    /// memory is there. Throws errc::system if memory is short; the newest copy is then still whole.
    void commit(std::uint64_t step, std::span<std::span<std::byte const> const> pieces, kept::origin const& by = {});

    /// Returns the whole copies, the newest first. Reads all of them.
    std::vector<copy> find();

    static std::size_t padded(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

  private:
    struct slot {
        std::byte* at = nullptr;
        std::size_t bytes = 0;  ///< mapped
    };
    void* map_page() const;
    kept::head& map(std::size_t which, std::size_t bytes);
    kept_slots look_at_slots(bool with_whole);
    void forget_later(std::uint64_t step);
    std::size_t take_slot();
    kept::head const* find_whole(std::size_t which);
    std::nullptr_t note_damage(std::size_t which);

    unique_fd file_;
    std::uint64_t part_ = 0;
    kept::control* control_ = nullptr;  ///< null in memory of this process alone
    std::array<slot, kept::slots> slots_;
    kept_commits commits_;
    std::array<bool, kept::slots> damaged_{};  ///< a warning was printed
};

}  // namespace muster
