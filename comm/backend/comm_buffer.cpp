#include "comm/backend/comm_buffer.hpp"

#include <cstring>
#include <new>

namespace muster {

comm_buffer plain_buffer(std::size_t bytes) {
    constexpr std::align_val_t page{4096};
    auto* const data = static_cast<std::byte*>(::operator new(bytes, page));
    std::memset(data, 0, bytes);
    return {data, bytes, [](std::byte* memory) { ::operator delete(memory, page); }};
}

}  // namespace muster
