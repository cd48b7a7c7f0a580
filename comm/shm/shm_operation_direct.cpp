// Large collectives that are no reductions and whose tensors all lie in shared buffers: each rank copies what it is to get.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/backend/comm_error.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/shm_operation.hpp"
#include "comm/shm/shm_sizes.hpp"

namespace muster::shm {

void throw_copy_failed(world const& all, int other, char const* call, int code) {
    station const& here = all.of(other).here();
    int const told = here.culprit.load(std::memory_order_relaxed);
    bool const gave_up = here.state.load(std::memory_order_acquire) == standing::failed;
    // One that gave up lets its memory go; the fault is whose it gave up because of.
    if (gave_up && told >= 0 && told < all.size && told != other && told != all.rank) {
        auto const& blamed = all.processes[static_cast<std::size_t>(told)];
        throw comm_error(errc::peer_failed,
                         fmt::format("rank {} of {}: {} gave up because of {}: {}", all.rank, all.size, name_of(all, other),
                                     name_of(all, told), describe(blamed, state_of(blamed))),
                         {told});
    }
    std::string const why = gave_up         ? "it gave up"
                            : code == ESRCH ? "its process is gone"
                                            : fmt::format("{}: {}", call, std::strerror(code));
    throw comm_error(
        errc::peer_failed,
        fmt::format("rank {} of {}: the memory of {} cannot be reached: {}", all.rank, all.size, name_of(all, other), why),
        {other});
}

void shm_operation::start_direct(world& all) {
    find_mapped(all, !all.direct);
    copy_own(all);
    stage_ = stage::direct;
    next_ = 0;
    from_ = (all.rank + 1) % all.size;
}

bool shm_operation::advance_direct(world& all) {
    std::size_t budget = budget_bytes;
    for (; from_ != all.rank; from_ = (from_ + 1) % all.size, next_ = 0) {
        pull const from = pull_from(all, from_);
        auto const at = static_cast<std::size_t>(from_);
        while (next_ < from.bytes) {
            if (budget == 0) return false;
            std::size_t const bytes = std::min(budget, from.bytes - next_);
            if (std::byte const* const near = all.near_inputs[at]; near != nullptr) {
                std::memcpy(out() + from.to + next_, near + from.from + next_, bytes);
            } else {
                auto const address = all.of(from_).announced(sequence_).in + from.from + next_;
                int const code = read_memory(all.processes[at].pid, out() + from.to + next_, address, bytes);
                if (code != 0) throw_copy_failed(all, from_, "process_vm_readv", code);
            }
            next_ += bytes;
            budget -= bytes;
        }
    }
    all.own().progress().finished.store(sequence_, std::memory_order_release);
    stage_ = stage::leave;
    return advance(all);
}

}  // namespace muster::shm
