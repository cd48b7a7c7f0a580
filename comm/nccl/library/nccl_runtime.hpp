// The state that all NCCL communicators of the process share.
#pragma once

#include <memory>

#include "comm/nccl/library/abort_owner.hpp"

namespace muster::nccl {

/// Lives as long as its last owner. Thread safe.
struct runtime {
    explicit runtime(library const& with) : aborts(with) {}
    abort_owner aborts;

    /// The process' own for this library.
    static std::shared_ptr<runtime> acquire(library const& with);
};

/// A number for each communicator that is made from a job's ranks, counting up; the same on all ranks since all make them in the
/// same order.
unsigned next_epoch() noexcept;

}  // namespace muster::nccl
