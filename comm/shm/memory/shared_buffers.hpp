// Buffers of this process that other ranks of its node can map. The owner's side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/memory/process_token.hpp"

namespace muster::shm {

/// A place in such memory, as sent to other processes: `file` is the owner's descriptor, which they open through /proc. No
/// pointers: sent as bytes.
struct shared_place {
    std::uint64_t buffer = 0;  ///< from 1, never used twice by a process; 0: not in shared memory
    std::uint64_t offset = 0;  ///< bytes
    std::int32_t file = -1;
    std::uint32_t inode = 0;  ///< the lower half of the file's
    bool operator==(shared_place const&) const = default;
};

/// The page after a buffer's memory holds this note, so that a process that maps it knows what it has mapped.
struct buffer_note {
    process_token owner;  ///< random: no other process's file holds it
    std::uint64_t buffer = 0;
    std::uint64_t bytes = 0;  ///< size of the memory, whole pages
    std::uint32_t freed = 0;  ///< set by its owner, with atomic_ref, and written last
};

/// Returns memory with its own nameless memory file, which is gone with the last process that has it open or mapped. Freed memory
/// goes back to the system at once, also while others have it mapped; what they still write goes to pages that nobody reads.
/// Thread safe. Throws errc::system, std::bad_alloc.
comm_buffer allocate_shared(std::size_t bytes);

/// Returns where the `bytes` at `data` lie, if all of them are in one buffer that this process itself, not its parent, has made.
/// Thread safe; takes less than a microsecond.
shared_place place_of(void const* data, std::size_t bytes) noexcept;

}  // namespace muster::shm
