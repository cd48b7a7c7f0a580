#include "comm/backend/memory/shared_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/units.hpp"

namespace muster::shm {

shared_memory::shared_memory(int file, std::size_t bytes) {
    void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (data == MAP_FAILED) throw_system("mmap", fmt::format("of {} shared by the ranks", format_bytes(bytes)));
    data_ = static_cast<std::byte*>(data);
    bytes_ = bytes;
}

shared_memory::~shared_memory() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
}

void shared_memory::touch() const noexcept {
    ::madvise(data_, bytes_, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
    ::madvise(data_, bytes_, MADV_POPULATE_WRITE);
#endif
}

unique_fd make_memory_file(std::size_t bytes) {
    unique_fd file(::memfd_create("muster-shm", MFD_CLOEXEC));
    if (!file) throw_system("memfd_create", "for the ranks of this node");
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
        throw_system("ftruncate", fmt::format("of a memory file to {}", format_bytes(bytes)));
    return file;
}

}  // namespace muster::shm
