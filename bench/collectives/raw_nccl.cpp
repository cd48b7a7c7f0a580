#include "bench/collectives/raw_nccl.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "comm/nccl/library/nccl_library.hpp"
#include "comm/nccl/nccl_enqueue.hpp"
#include "comm/backend/rendezvous/pmix_rendezvous.hpp"
#include "comm/nccl/reduction_plan.hpp"

namespace muster {

namespace {

nccl::nccl_comm connect(identity const& who, std::shared_ptr<cuda::device const> const& on, duration deadline) {
    nccl::library const& with = *nccl::find_library().use;
    nccl::unique_id id{};
    if (who.rank == 0)
        if (int const code = with.get_unique_id(&id); code != nccl::success)
            throw nccl_error("ncclGetUniqueId", code, with.error_string(code));
    auto const ids = gather_by_pmix(who, "muster.bench.raw-nccl", std::as_bytes(std::span(&id, 1)), deadline);
    if (ids.front().size() != sizeof id)
        throw error(errc::invalid_data, "raw-nccl: the id from rank 0 is not as long as an id of NCCL");
    std::memcpy(&id, ids.front().data(), sizeof id);
    return nccl::nccl_comm::create(nccl::runtime::acquire(with), with, on, id, who.rank, who.world_size,
                                   fmt::format("rank {} of {} on {}", who.rank, who.world_size, who.host), deadline);
}

nccl::op op_of(reduction how) noexcept {
    switch (how) {
        case reduction::average: return nccl::op::average;
        case reduction::min: return nccl::op::min;
        case reduction::max: return nccl::op::max;
        case reduction::product: return nccl::op::product;
        case reduction::sum:
        case reduction::adasum: break;
    }
    return nccl::op::sum;
}

}  // namespace

std::string nccl_lacks() {
    if (auto const& found = nccl::find_library(); found.use == nullptr) return found.why_not;
    return cuda::find_driver().why_not;
}

std::shared_ptr<cuda::device const> gpu_of(identity const& who) {
    if (auto const lacking = nccl_lacks(); !lacking.empty()) throw error(errc::unavailable, "nccl: " + lacking);
    auto const& found = cuda::find_driver();
    return cuda::device::open(found, cuda::choose_device(found, -1, who.local_rank));
}

raw_nccl::raw_nccl(identity const& who, std::shared_ptr<cuda::device const> on, duration deadline)
    : who_(who),
      on_(std::move(on)),
      deadline_(deadline),
      stream_(cuda::make_stream(*on_)),
      scratch_(cuda::make_memory(*on_, 4)),
      comm_(connect(who, on_, deadline)) {}

raw_nccl::~raw_nccl() {
    comm_.end(deadline_);
}

void raw_nccl::put(collective const& what, nccl::op how) {
    cuda::device::scope const current(*on_);
    auto const stream = stream_.get().handle;
    auto const result = comm_.use([&](nccl::comm_handle comm) {
        return nccl::enqueue({comm_.with(), comm, std::bit_cast<nccl::stream_handle>(stream), who_.rank, who_.world_size,
                              std::bit_cast<void*>(scratch_.get().handle)},
                             what, how);
    });
    comm_.check(result.code, result.call);
    while (comm_.state() == nccl::in_progress) {
    }
    cuda::check(on_->with(), on_->with().stream_synchronize(stream), "cuStreamSynchronize");
    comm_.require_alive();
}

void raw_nccl::run(collective_case const& of, tensor_view in, tensor_view out) {
    collective what{of.what, in, out, of.how, of.root};
    if (of.what == collective::kind::alltoall) {
        auto const ranks = static_cast<std::size_t>(who_.world_size);
        what.send_counts.assign(ranks, in.count / ranks);
        what.receive_counts = what.send_counts;
    }
    put(what, op_of(of.how));
}

void raw_nccl::barrier() {
    put({}, nccl::op::sum);
}

std::string raw_nccl::version() const {
    return "NCCL " + nccl::version_text(nccl::find_library().version);
}

}  // namespace muster
