// Memory without a name that processes share: its file and its mapping.
#pragma once

#include <cstddef>
#include <utility>

#include "base/unique_fd.hpp"

namespace muster::shm {

/// Returns `bytes` rounded up to pages.
constexpr std::size_t whole_pages(std::size_t bytes) noexcept {
    return (bytes + 4095) / 4096 * 4096;
}

/// Owner of a mapping. The kernel frees the memory with the last process that has it.
class shared_memory {
  public:
    shared_memory() noexcept = default;
    /// Maps `bytes` of `file`, which may be closed afterwards. Throws errc::system.
    shared_memory(int file, std::size_t bytes);
    shared_memory(shared_memory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    shared_memory& operator=(shared_memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~shared_memory();

    std::byte* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }

    /// Has the kernel prepare all of it, in large pages if it gives shared memory any
    /// (/sys/kernel/mm/transparent_hugepage/shmem_enabled), so that the first use need not wait for that.
    void touch() const noexcept;

  private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Makes a file of `bytes` zeroes that exists in memory only (memfd_create). Throws errc::system.
unique_fd make_memory_file(std::size_t bytes);

}  // namespace muster::shm
