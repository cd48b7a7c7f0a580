#include "comm/backend/collective_backend.hpp"

namespace muster {

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
