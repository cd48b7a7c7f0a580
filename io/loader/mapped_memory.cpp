#include "io/loader/mapped_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "base/units.hpp"

namespace muster {

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
        throw error(errc::invalid_data,
                    fmt::format("{}: ends at {}, expected {} bytes from offset {}; the file is truncated: copy it again", path,
                                size, bytes, offset));
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
