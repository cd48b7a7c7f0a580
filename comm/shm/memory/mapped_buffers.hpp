// Memory of other ranks, mapped into this process and kept mapped between collectives.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/backend/memory/shared_memory.hpp"
#include "comm/shm/memory/shared_buffers.hpp"

namespace muster::shm {

/// Whose buffers they are, and what proves that a file is one of them.
struct buffers_owner {
    pid_t pid = 0;
    process_token token;       ///< what it announced; the buffers' notes hold it
    std::uint64_t device = 0;  ///< of the file system that memory files of this kernel lie on
};

/// The buffers of one other process that this one has seen. They stay mapped between collectives.
class mapped_buffers {
  public:
    static constexpr std::size_t most = 1024;

    /// To be called when nothing that was found is in use. If there came more since the last time, lets go of those that their
    /// owner has freed and, beyond `most`, of those that were not used for longest.
    void tidy() noexcept;

    /// Address here of what process `owner` has at `place`, of `bytes`; null with errno in `code` if it cannot be mapped: EACCES
    /// or EPERM where the kernel does not allow it, ESRCH if the process or its buffer is gone, EBADF if there is something else:
    /// in another PID namespace, or through another one's /proc, the number means another process.
    std::byte* find(buffers_owner const& owner, shared_place const& place, std::size_t bytes, int& code);

    std::size_t size() const noexcept { return mapped_.size(); }

  private:
    struct entry {
        std::uint64_t buffer;
        std::uint64_t used;
        std::size_t bytes;
        shared_memory memory;
    };
    std::vector<entry> mapped_;
    std::size_t last_ = 0;  // where the last one was found: the next often is there or follows
    std::uint64_t uses_ = 0;
    bool grown_ = false;
};

}  // namespace muster::shm
