// Memory from the system: maps large pages for a shard, or a part of a file in the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/unique_handle.hpp"
#include "comm/communicator.hpp"

namespace muster {

struct mapping_traits {
    struct type {
        void* address = nullptr;
        std::size_t bytes = 0;
        bool operator==(type const&) const = default;
    };
    static type null() noexcept { return {}; }
    static void close(type mapping) noexcept;
};

/// Owns a run of bytes. Move-only.
class mapped_memory {
  public:
    mapped_memory() = default;

    /// Zeroed, private, writable; on large pages where the system has them, since random access to a shard on small ones mostly
    /// waits for the TLB. Throws errc::system that tells how much was wanted.
    static mapped_memory allocate(std::size_t bytes);

    /// Bytes `offset` … of a file, shared with every process on the node that maps it, read only: writing through bytes() is a
    /// crash. The kernel is asked to read them ahead. Throws errc::invalid_data if the file is shorter now; a file cut short
    /// later kills the process with SIGBUS.
    static mapped_memory map_file(std::string const& path, std::uint64_t offset, std::size_t bytes);

    /// `whole` bytes of a memory file, of which bytes() are the first `bytes`; read only unless `writable`. The file may be closed
    /// afterwards. Throws errc::system.
    static mapped_memory map_shared(int file, std::size_t bytes, std::size_t whole, bool writable);

    /// Makes writing through bytes() a crash from now on. Throws errc::system.
    void protect() const;

    std::span<std::uint8_t> bytes() const noexcept { return bytes_; }

  private:
    unique_handle<mapping_traits> mapping_;
    std::span<std::uint8_t> bytes_;
};

// One copy of a dataset's bytes a node: fills it on one rank, maps it read-only on the others.

/// The ranks of `ranks` that share this rank's node, by what each knows of its node: the lowest of them, how many there are, and
/// this one's place. They need not follow each other. Collective.
struct node_ranks {
    int first = 0;
    int count = 1;
    int place = 0;
};
node_ranks ranks_of_node(communicator& ranks);

/// Collective. Memory of `bytes` that all ranks of a node see, read only: on the node's lowest rank `fill` writes it, on the
/// others it is called with an empty span (to take part where reading is collective). It has no name anywhere: the kernel frees
/// it with the last process that maps it, also if all are killed. `large_pages`: on pages of 2 MiB that the node has reserved
/// (vm.nr_hugepages); else on those that it gives to shared memory by itself. All ranks throw if one fails: errc::system where
/// there is not enough memory or no such pages, errc::unavailable where a rank may not open the memory of another (other users,
/// other PID namespaces).
mapped_memory share_on_node(communicator& ranks, std::size_t bytes, bool large_pages,
                            std::function<void(std::span<std::uint8_t>)> const& fill);

}  // namespace muster
