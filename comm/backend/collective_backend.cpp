#include "comm/backend/collective_backend.hpp"

#include <cstring>
#include <new>

namespace muster {

void refuse_absurd_size(std::size_t bytes) {
    if (bytes > static_cast<std::size_t>(PTRDIFF_MAX) - 4 * 4096) throw std::bad_alloc();
}

comm_buffer plain_buffer(std::size_t bytes) {
    refuse_absurd_size(bytes);
    constexpr std::align_val_t page{4096};
    auto* const data = static_cast<std::byte*>(::operator new(bytes, page));
    std::memset(data, 0, bytes);
    return {data, bytes, [](std::byte* memory) { ::operator delete(memory, page); }};
}

std::string_view to_string(collective::kind what) noexcept {
    switch (what) {
        case collective::kind::allreduce: return "allreduce";
        case collective::kind::broadcast: return "broadcast";
        case collective::kind::allgather: return "allgather";
        case collective::kind::barrier: return "barrier";
        case collective::kind::reducescatter: return "reducescatter";
        case collective::kind::alltoall: return "alltoall";
        case collective::kind::sendrecv: return "sendrecv";
    }
    return "unknown";
}

}  // namespace muster
