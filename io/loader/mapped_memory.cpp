#include "io/loader/mapped_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/throw_error.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"
#include "comm/fail_together.hpp"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // since Linux 5.1
#endif

namespace muster {

namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;

/// Says where a rank's memory file is.
struct announcement {
    std::int64_t pid, file, device, node;
};
constexpr std::size_t words = sizeof(announcement) / sizeof(std::int64_t);

unique_fd make_file(std::size_t bytes, bool large_pages) {
    unique_fd file(::memfd_create("muster-node-copy", MFD_CLOEXEC | MFD_ALLOW_SEALING | (large_pages ? MFD_HUGETLB : 0u)));
    if (!file) throw_system("memfd_create", format_bytes(bytes), 0, "leave large pages out");
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
        throw_system("ftruncate", fmt::format("a memory file of {}", format_bytes(bytes)));
    return file;
}

/// The other processes' file is opened through the one who holds it; that it is the same one is checked, since in another PID
/// namespace the number means another process.
unique_fd open_of(announcement const& from) {
    std::string const path = fmt::format("/proc/{}/fd/{}", from.pid, from.file);
    unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0 || static_cast<std::int64_t>(status.st_ino) != from.node ||
        static_cast<std::int64_t>(status.st_dev) != from.device)
        throw_error(errc::unavailable,
                    "{}: cannot be opened as the node's copy of the samples ({}); run the ranks of a node as one user in one PID "
                    "namespace, or use memory mode whole or mapped",
                    path, file ? "another file is there" : ::strerror(errno));
    return file;
}

}  // namespace

node_ranks ranks_of_node(communicator& ranks) {
    std::int64_t mine = ranks.who().node_rank;
    std::vector<std::int64_t> all(static_cast<std::size_t>(ranks.size()));
    ranks.allgather("nodes of the ranks", view_of(std::span(&mine, 1)), view_of(std::span(all))).wait();
    node_ranks found{-1, 0, 0};
    for (int rank = 0; rank < ranks.size(); ++rank) {
        if (all[static_cast<std::size_t>(rank)] != mine) continue;
        if (found.first < 0) found.first = rank;
        if (rank < ranks.rank()) ++found.place;
        ++found.count;
    }
    return found;
}

mapped_memory share_on_node(communicator& ranks, std::size_t bytes, bool large_pages,
                            std::function<void(std::span<std::uint8_t>)> const& fill) {
    node_ranks const node = ranks_of_node(ranks);
    bool const leads = node.first == ranks.rank();
    std::size_t const unit = large_pages ? large_page : static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t const whole = (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
    unique_fd file;
    mapped_memory memory;
    run_on_all(ranks, "making a node's copy of the samples", [&] {
        if (!leads) return;
        file = make_file(whole, large_pages);
        memory = mapped_memory::map_shared(file.get(), bytes, whole, true);
    });
    run_on_all(ranks, "reading the samples", [&] { fill(leads ? memory.bytes() : std::span<std::uint8_t>()); });

    announcement mine{};
    run_on_all(ranks, "sealing a node's copy of the samples", [&] {
        if (!leads) return;
        memory.protect();
        // Nobody who opens it from now on can write it; where the kernel is older, the others' mappings alone are read only.
        ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE);
        struct stat status {};
        if (::fstat(file.get(), &status) != 0) throw_system("fstat", "a node's copy of the samples");
        mine = {::getpid(), file.get(), static_cast<std::int64_t>(status.st_dev), static_cast<std::int64_t>(status.st_ino)};
    });
    std::vector<announcement> all(static_cast<std::size_t>(ranks.size()));
    ranks
        .allgather("places of the nodes' copies", view_of(std::span(reinterpret_cast<std::int64_t*>(&mine), words)),
                   view_of(std::span(reinterpret_cast<std::int64_t*>(all.data()), all.size() * words)))
        .wait();
    // All have mapped it when this returns: then the file may be closed.
    run_on_all(ranks, "mapping a node's copy of the samples", [&] {
        if (leads) return;
        unique_fd const theirs = open_of(all[static_cast<std::size_t>(node.first)]);
        memory = mapped_memory::map_shared(theirs.get(), bytes, whole, false);
    });
    return memory;
}

void mapping_traits::close(type mapping) noexcept {
    ::munmap(mapping.address, mapping.bytes);
}

mapped_memory mapped_memory::allocate(std::size_t bytes) {
    mapped_memory memory;
    if (bytes == 0) return memory;
    constexpr std::size_t large_page = std::size_t{2} << 20;
    std::size_t const whole = (bytes + large_page - 1) / large_page * large_page;
    // One large page more than needed, so that the bytes can begin at the border of one.
    std::size_t const reserved = whole + large_page;
    void* const address = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED)
        throw_system("mmap", format_bytes(reserved), 0, "the shard does not fit: use more nodes, or memory mode mapped");
    memory.mapping_.reset({address, reserved});
    auto const start = (reinterpret_cast<std::uintptr_t>(address) + large_page - 1) / large_page * large_page;
    ::madvise(reinterpret_cast<void*>(start), whole, MADV_HUGEPAGE);
    memory.bytes_ = {reinterpret_cast<std::uint8_t*>(start), bytes};
    return memory;
}

mapped_memory mapped_memory::map_file(std::string const& path, std::uint64_t offset, std::size_t bytes) {
    mapped_memory memory;
    if (bytes == 0) return memory;
    unique_fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) throw_system("open", path);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throw_system("fstat", path);
    std::uint64_t const size = static_cast<std::uint64_t>(status.st_size);
    if (offset > size || bytes > size - offset)
        throw_error(errc::invalid_data, "{}: ends at {}, expected {} bytes from offset {}; the file is truncated: copy it again",
                    path, size, bytes, offset);
    std::size_t const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::size_t const before = offset % page;
    void* const address = ::mmap(nullptr, before + bytes, PROT_READ, MAP_SHARED, fd.get(), static_cast<off_t>(offset - before));
    if (address == MAP_FAILED) throw_system("mmap", path, 0, "use memory mode whole or shard");
    memory.mapping_.reset({address, before + bytes});
    ::madvise(address, before + bytes, MADV_WILLNEED);
    memory.bytes_ = {static_cast<std::uint8_t*>(address) + before, bytes};
    return memory;
}

mapped_memory mapped_memory::map_shared(int file, std::size_t bytes, std::size_t whole, bool writable) {
    mapped_memory memory;
    void* const address = ::mmap(nullptr, whole, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
    if (address == MAP_FAILED)
        throw_system("mmap", fmt::format("{} shared by the ranks of a node", format_bytes(whole)), 0,
                     "where large pages were asked for, reserve them (vm.nr_hugepages) or leave them out; else use more nodes");
    memory.mapping_.reset({address, whole});
    ::madvise(address, whole, MADV_HUGEPAGE);
    memory.bytes_ = {static_cast<std::uint8_t*>(address), bytes};
    return memory;
}

void mapped_memory::protect() const {
    auto const& mapping = mapping_.get();
    if (mapping.address != nullptr && ::mprotect(mapping.address, mapping.bytes, PROT_READ) != 0)
        throw_system("mprotect", format_bytes(mapping.bytes));
}

}  // namespace muster
