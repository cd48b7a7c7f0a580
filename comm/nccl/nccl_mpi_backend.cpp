#include "comm/nccl/nccl_mpi_backend.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <exception>
#include <span>
#include <vector>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/cuda/device.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/hierarchical/hierarchical_backend.hpp"
#include "comm/mpi/mpi_backend.hpp"
#include "comm/nccl/chunked_allreduce_backend.hpp"
#include "comm/nccl/nccl_backend.hpp"

namespace muster::nccl {

namespace {

using kind = collective::kind;

/// One collective under way.
struct staged_slot {
    enum class stage {
        idle,
        down,    ///< its input is being copied to the host; in the order of the starts
        across,  ///< the host's backend has it
        up,      ///< its output is on the way back, `finished` recorded behind it
        ended,   ///< by a failure
    };
    stage at = stage::idle;
    std::exception_ptr failure;
    collective what;
    ticket inner = 0;
    cuda::unique_event given, copied, finished;
    pinned_memory memory;
    tensor_view in, out;  ///< in `memory`
};

/// Whether input and output are one on the host.
bool in_place(collective const& what) noexcept {
    return what.what == kind::allreduce || what.what == kind::broadcast;
}

cuda::device_address address_of(tensor_view const& of) noexcept {
    return std::bit_cast<cuda::device_address>(of.data);
}

class host_staged_backend final : public collective_backend {
  public:
    host_staged_backend(std::unique_ptr<collective_backend> host, int rank, std::shared_ptr<cuda::device const> on)
        : device_(std::move(on)),
          rank_(rank),
          down_(cuda::make_stream(*device_)),
          up_(cuda::make_stream(*device_)),
          host_(std::move(host)) {}

    ~host_staged_backend() override {
        host_.reset();
        if (!failed_ && running_.empty() && queue_.empty()) return;
        detail::keep_forever(std::move(device_));  // the device or the network may still use all of it
        detail::keep_forever(std::move(down_));
        detail::keep_forever(std::move(up_));
        detail::keep_forever(std::move(slots_));
    }

    std::vector<std::string> const& hosts() const noexcept override { return host_->hosts(); }
    bool crowded() const noexcept override { return host_->crowded(); }
    bool reaches(memory_kind where) const noexcept override { return where == memory_kind::device; }
    void const* native() const noexcept override { return host_->native(); }

    ticket start(collective const& what) override {
        cuda::device::scope const current(*device_);
        ticket const which = take_slot();
        staged_slot& next = at(which);
        next.what = what;
        next.inner = 0;
        try {
            copy_down(next);
        } catch (...) {
            failed_ = true;  // and the slot is not used again
            throw;
        }
        next.at = staged_slot::stage::down;
        queue_.push_back(which);
        advance();
        return which;
    }

    bool done(ticket which) override {
        staged_slot& asked = at(which);
        if (asked.at == staged_slot::stage::down || asked.at == staged_slot::stage::across) advance_all();
        if (asked.at == staged_slot::stage::up && is_through(asked.finished)) {
            put_back(which);
            return true;
        }
        if (!asked.failure) return false;
        auto const failure = std::exchange(asked.failure, nullptr);
        put_back(which);
        std::rethrow_exception(failure);
    }

    void progress() override { advance_all(); }

    bool order(ticket which, void* on) override {
        staged_slot& asked = at(which);
        if (asked.at == staged_slot::stage::down || asked.at == staged_slot::stage::across) advance_all();
        if (asked.failure) std::rethrow_exception(asked.failure);
        if (asked.at != staged_slot::stage::up) return false;
        cuda::device::scope const current(*device_);
        check(device_->with().stream_wait_event(static_cast<cuda::stream_handle>(on), asked.finished.get().handle, 0),
              "cuStreamWaitEvent");
        return true;
    }

    void abandon(ticket which) noexcept override {
        if (which == 0) return host_->abandon(0);
        failed_ = true;
        staged_slot& left = at(which);
        if (left.at == staged_slot::stage::across && left.inner != 0)
            host_->abandon(left.inner);
        else
            host_->abandon(0);
        std::erase(queue_, which);
        std::erase(running_, which);
    }

    std::vector<late_rank> late_ranks(ticket which) noexcept override {
        return host_->late_ranks(which != 0 && at(which).at == staged_slot::stage::across ? at(which).inner : 0);
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override {
        auto const place = std::find(ranks.begin(), ranks.end(), rank_);
        auto part = host_->subset(ranks);
        if (!part) return nullptr;
        return std::make_unique<host_staged_backend>(std::move(part), static_cast<int>(place - ranks.begin()), device_);
    }

  private:
    cuda::driver const& with() const noexcept { return device_->with(); }
    void check(int code, std::string_view call) const { cuda::check(with(), code, call); }
    staged_slot& at(ticket which) { return slots_.at(which); }

    ticket take_slot() {
        return slots_.take([&](staged_slot& made) {
            for (auto* const event : {&made.given, &made.copied, &made.finished}) *event = cuda::make_event(*device_);
        });
    }

    void put_back(ticket which) {
        at(which).at = staged_slot::stage::idle;
        slots_.put_back(which);
    }

    void copy_down(staged_slot& next) {
        auto const& what = next.what;
        auto const down = down_.get().handle;
        std::size_t const before_out = in_place(what) ? 0 : (what.in.bytes() + 63) / 64 * 64;
        auto* const memory = next.memory.at_least(*device_, before_out + what.out.bytes() + 1);
        next.in = {memory, what.in.count, what.in.type, memory_kind::host};
        next.out = {memory + before_out, what.out.count, what.out.type, memory_kind::host};
        check(with().event_record(next.given.get().handle, static_cast<cuda::stream_handle>(what.stream)), "cuEventRecord");
        check(with().stream_wait_event(down, next.given.get().handle, 0), "cuStreamWaitEvent");
        bool const is_read = what.in.count != 0 && (what.what != kind::broadcast || what.root == rank_);
        if (is_read)
            check(with().copy_device_to_host(next.in.data, address_of(what.in), what.in.bytes(), down), "cuMemcpyDtoHAsync");
        check(with().event_record(next.copied.get().handle, down), "cuEventRecord");
    }

    void start_on_host(staged_slot& next) {
        collective inside = next.what;
        inside.in = next.in;
        inside.out = next.out;
        inside.stream = nullptr;
        next.inner = host_->start(inside);
        next.at = staged_slot::stage::across;
    }

    void copy_up(staged_slot& next) {
        auto const up = up_.get().handle;
        if (next.what.out.count != 0)
            check(with().copy_host_to_device(address_of(next.what.out), next.out.data, next.out.bytes(), up),
                  "cuMemcpyHtoDAsync");
        check(with().event_record(next.finished.get().handle, up), "cuEventRecord");
        next.at = staged_slot::stage::up;
    }

    bool is_through(cuda::unique_event const& event) {
        cuda::device::scope const current(*device_);
        int const code = with().event_query(event.get().handle);
        if (code == cuda::error_not_ready) return false;
        check(code, "cuEventQuery");
        return true;
    }

    /// Runs a step of `of`, whose failure ends it. Whether it went well.
    template <typename Step>
    bool try_step(staged_slot& of, Step&& step) {
        try {
            return step();
        } catch (...) {
            failed_ = true;
            of.failure = std::current_exception();
            of.at = staged_slot::stage::ended;
            return true;
        }
    }

    void advance() {
        while (!queue_.empty()) {  // the host's backend gets them in the order of the starts
            staged_slot& first = at(queue_.front());
            bool const moved = try_step(first, [&] {
                if (!is_through(first.copied)) return false;
                start_on_host(first);
                return true;
            });
            if (!moved) return;
            running_.push_back(queue_.front());
            queue_.pop_front();
        }
    }

    void advance_all() {
        if (queue_.empty() && running_.empty()) return;
        cuda::device::scope const current(*device_);
        advance();
        std::erase_if(running_, [&](ticket which) {
            staged_slot& each = at(which);
            if (each.at == staged_slot::stage::ended) return true;
            return try_step(each, [&] {
                if (each.inner != 0 && !host_->done(each.inner)) return false;
                copy_up(each);
                return true;
            });
        });
    }

    std::shared_ptr<cuda::device const> device_;
    int rank_;
    cuda::unique_stream down_, up_;
    std::unique_ptr<collective_backend> host_;
    bool failed_ = false;
    detail::slot_table<staged_slot> slots_;
    std::deque<ticket> queue_;     ///< that are being copied to the host
    std::vector<ticket> running_;  ///< with the host's backend
};

}  // namespace

/// `rank` is this one's in `host`. Each collective is copied into pinned host memory, done there by `host`, and copied back; as
/// many at once as are started. Their results are those of `host`. Copies wait on the device for what the program's stream holds;
/// the host asks (done(), progress(), order()) before the next step begins. order() is true once the copy back has been handed to
/// the device. Of ticket 0 late_ranks() and abandon() are those of `host`. Everything that fails, or is given up, leaves its
/// pinned memory allocated, since the device or the network may still write to it. Throws cuda_error and what `host` throws.
std::unique_ptr<collective_backend> make_host_staged_backend(std::unique_ptr<collective_backend> host, int rank,
                                                             std::shared_ptr<cuda::device const> on) {
    return std::make_unique<host_staged_backend>(std::move(host), rank, std::move(on));
}

}  // namespace muster::nccl

namespace muster {

namespace {

/// Why no rank of this world can be served, the same on all.
std::optional<std::string> not_for(identity const& who, comm_options const& options) {
    if (options.backend != "nccl_mpi") return "it is taken by name only, since nccl goes across the nodes by itself";
    if (who.node_count <= 1) return "all ranks are on one node, which nccl serves";
    if (auto const refusal = mpi_unavailable(who, options)) return "it needs mpi: " + *refusal;
    return std::nullopt;
}

/// What each rank gives, in the order of the ranks.
std::vector<std::vector<std::byte>> gather_over(collective_backend& world, std::span<std::byte const> mine, std::size_t size,
                                                comm_options const& options) {
    std::vector<std::byte> own(mine.begin(), mine.end()), all(mine.size() * size);
    auto const bytes = [](std::vector<std::byte>& of) { return tensor_view{of.data(), of.size(), dtype::u8, memory_kind::host}; };
    run_now(world, {collective::kind::allgather, bytes(own), bytes(all)}, options, "rendezvous before NCCL");
    return split_by_rank(all, size);
}

/// The faults of all ranks in one error, the same on all; `fault` is this one's.
std::optional<comm_error> agree_on_faults(collective_backend& world, identity const& who, comm_options const& options,
                                          std::optional<error> const& fault) {
    auto record = nccl::describe_rank(who, options, 0, "");
    if (fault) nccl::set_fault(record, fault->code(), fault->what());
    auto const size = static_cast<std::size_t>(who.world_size);
    auto const blobs = gather_over(world, std::as_bytes(std::span(&record, 1)), size, options);
    try {
        std::vector<nccl::rank_record> records;
        for (auto const& blob : blobs) records.push_back(nccl::read_record(blob, static_cast<int>(records.size()), who));
        nccl::check_records(records, who);
    } catch (comm_error const& problem) {
        return problem;
    }
    return std::nullopt;
}

/// Runs `body`. What it throws on any rank is thrown on all, after MPI, of which all are, has been left in order.
template <typename Body>
void run_on_all(std::unique_ptr<collective_backend>& world, identity const& who, comm_options const& options,
                nccl::chunked_allreduce_parts& parts, Body&& body) {
    std::optional<error> fault;
    try {
        body();
    } catch (error const& problem) {
        fault = problem;
    }
    auto const agreed = agree_on_faults(*world, who, options, fault);
    if (!agreed) return;
    parts.node.reset();  // not by an exception that unwinds: that would abort what others have on NCCL
    world.reset();
    throw *agreed;
}

/// NCCL's communicator of this node's ranks; all ranks of the world gather what it needs.
std::unique_ptr<collective_backend> make_node(collective_backend& world, identity const& who, node_groups const& groups,
                                              comm_options const& options) {
    auto const gather = [&](identity const&, std::span<std::byte const> mine, duration) {
        auto const all = gather_over(world, mine, static_cast<std::size_t>(who.world_size), options);
        std::vector<std::vector<std::byte>> local;
        for (int const rank : groups.local) local.push_back(all[static_cast<std::size_t>(rank)]);
        return local;
    };
    return nccl::make_backend(identity_on_node(who, groups, "nccl"), options,
                              {&nccl::find_library(), &cuda::find_driver(), gather});
}

}  // namespace

std::optional<std::string> nccl_mpi_unavailable(identity const& who, comm_options const& options) {
    if (auto const refusal = not_for(who, options)) return refusal;
    return nccl_unavailable(who, options);
}

std::unique_ptr<collective_backend> make_nccl_mpi_backend(identity const& who, comm_options const& options) {
    if (auto const refusal = not_for(who, options)) throw error(errc::unavailable, *refusal);
    auto world = make_mpi_backend(who, options);
    comm_options own = options;
    nccl::chunked_allreduce_parts parts;
    run_on_all(world, who, options, parts, [&] {
        if (auto const lacking = nccl_unavailable(who, options)) throw error(errc::unavailable, *lacking);
        own.device = cuda::choose_device(cuda::find_driver(), options.device, who.local_rank);
        parts.on = cuda::device::open(cuda::find_driver(), own.device);
    });
    parts.groups = group_by_node(gather_places(*world, who, options), who.rank);
    if (parts.groups.refusal.empty()) {
        run_on_all(world, who, options, parts, [&] { parts.node = make_node(*world, who, parts.groups, own); });
        parts.across = world->subset(parts.groups.across);
        spdlog::debug(
            "communicator: nccl_mpi: {} nodes of {} ranks, from {} on in chunks of {}; within them by NCCL, across by mpi",
            parts.groups.across.size(), parts.groups.local.size(), format_bytes(options.hierarchical_bytes),
            format_bytes(options.node_chunk_bytes));
    } else {
        spdlog::info("communicator: nccl_mpi goes flat over mpi, through host memory: {}", parts.groups.refusal);
    }
    parts.staged = nccl::make_host_staged_backend(std::move(world), who.rank, parts.on);
    return nccl::make_chunked_allreduce_backend(std::move(parts), options.hierarchical_bytes, options.node_chunk_bytes);
}

}  // namespace muster
