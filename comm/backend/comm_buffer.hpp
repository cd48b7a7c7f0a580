// The owner of memory that collectives are fastest on.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

namespace muster {

/// Move-only owner of memory from communicator::allocate(): zeroed, beginning on a page. Which kind of memory that is depends on
/// the backend; it is used as any other, and any part of it may be a tensor of any communicator.
///
/// To be kept until every collective on it has finished. It may outlive the communicator that it came from. After fork() a child
/// sees the parent's memory itself, not a copy of it, where the backend is shm: it should leave it alone.
class comm_buffer {
  public:
    comm_buffer() noexcept = default;
    /// `release` is called with `data` at the end.
    comm_buffer(std::byte* data, std::size_t bytes, std::function<void(std::byte*)> release)
        : memory_(data, std::move(release)), bytes_(bytes) {}

    std::byte* data() const noexcept { return memory_.get(); }
    std::size_t bytes() const noexcept { return bytes_; }
    explicit operator bool() const noexcept { return data() != nullptr; }

    /// As many elements as there is room for.
    template <typename T>
    std::span<T> as() const noexcept {
        return {reinterpret_cast<T*>(data()), bytes_ / sizeof(T)};
    }

  private:
    std::unique_ptr<std::byte, std::function<void(std::byte*)>> memory_;
    std::size_t bytes_ = 0;
};

/// Throws std::bad_alloc for more bytes than any memory has (PTRDIFF_MAX): rounded up to pages they might be few.
void refuse_absurd_size(std::size_t bytes);

/// Plain memory of this process. Throws std::bad_alloc.
comm_buffer plain_buffer(std::size_t bytes);

}  // namespace muster
