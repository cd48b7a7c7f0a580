#include "comm/nccl/nccl_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <deque>
#include <exception>
#include <optional>
#include <thread>

#include "base/throw_error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/backend/late_ranks.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/nccl/nccl_enqueue.hpp"

namespace muster::nccl {

namespace {

/// One collective under way.
struct collective_slot {
    enum class stage {
        idle,
        queued,    ///< waits until NCCL has taken those before it
        starting,  ///< NCCL has taken it and sets up what it needs, perhaps with other ranks
        running,   ///< on the device's stream, followed by `finished`
        ended,
    };
    stage at = stage::idle;
    std::exception_ptr failure;
    collective what;
    reduction_plan reduce;
    cuda::unique_event given;     ///< recorded on the program's stream at the start of the collective
    cuda::unique_event finished;  ///< recorded after it on the backend's stream
    cuda::unique_memory scaled;   ///< of a reducescatter: input that is scaled first
    std::size_t scaled_bytes = 0;
    std::optional<cuda::fusion_launch> before, after;
};

/// Most NCCL operations that are kept.
constexpr std::size_t most_scaled_sums = 32;

/// An NCCL operation made for a type and a factor.
struct scaled_sum {
    type element;
    double factor;
    op how;
};

class nccl_backend final : public collective_backend {
  public:
    /// The communicator comes last, so that nothing fails after it is made and before it has its owner.
    nccl_backend(world ranks, workspace space, nccl_comm comm)
        : world_(std::move(ranks)), space_(std::move(space)), device_(space_.on), comm_(std::move(comm)) {}

    ~nccl_backend() override {
        bool const in_order = std::uncaught_exceptions() == 0 && queue_.empty() && running_.empty();
        bool const gone = in_order
                              ? comm_.end(world_.deadline)
                              : comm_.give_up(fmt::format("{}: its communicator went before it had finished", world_.speaker));
        if (gone) return;
        detail::keep_forever(std::move(space_));
        detail::keep_forever(std::move(slots_));
    }

    std::vector<std::string> const& hosts() const noexcept override { return world_.hosts; }
    bool crowded() const noexcept override { return world_.crowded; }
    bool reaches(memory_kind where) const noexcept override { return where == memory_kind::device; }
    void const* native() const noexcept override { return nullptr; }

    ticket start(collective const& what) override {
        if (is_empty(what)) return 0;
        cuda::device::scope const current(*device_);
        auto const plan = plan_for(what);
        if (plan.needs_kernels()) load_kernels(what);
        ticket const which = take_slot();
        collective_slot& next = at(which);
        next.what = what;
        next.reduce = plan;
        next.at = collective_slot::stage::queued;
        try {
            check(device_->with().event_record(next.given.get().handle, static_cast<cuda::stream_handle>(what.stream)),
                  "cuEventRecord");
            queue_.push_back(which);
            advance();
        } catch (...) {
            std::erase(queue_, which);
            std::erase(running_, which);
            put_back(which);
            auto const failure = with_ranks(std::current_exception());
            fail_all(failure);
            std::rethrow_exception(failure);
        }
        return which;
    }

    bool done(ticket which) override {
        collective_slot& asked = at(which);
        if (asked.at != collective_slot::stage::ended) advance_all();
        if (asked.at != collective_slot::stage::ended) return false;
        auto const failure = asked.failure;
        put_back(which);
        if (failure) std::rethrow_exception(failure);
        return true;
    }

    void progress() override { advance_all(); }

    bool order(ticket which, void* on) override {
        collective_slot& asked = at(which);
        if (asked.at == collective_slot::stage::queued || asked.at == collective_slot::stage::starting) advance_all();
        if (asked.failure) std::rethrow_exception(asked.failure);
        if (asked.at == collective_slot::stage::queued || asked.at == collective_slot::stage::starting) return false;
        cuda::device::scope const current(*device_);
        check(device_->with().stream_wait_event(static_cast<cuda::stream_handle>(on), asked.finished.get().handle, 0),
              "cuStreamWaitEvent");
        return true;
    }

    /// Aborts, as nothing else takes a collective from the device: everything under way has then failed.
    void abandon(ticket which) noexcept override {
        collective_slot& left = at(which);
        if (left.at != collective_slot::stage::ended)
            comm_.give_up(fmt::format("{}: a {} was given up", world_.speaker, to_string(left.what.what)));
        std::erase(queue_, which);
        std::erase(running_, which);  // its slot is not used again
    }

    std::vector<late_rank> late_ranks(ticket) noexcept override try {
        return lost_ranks(world_.processes, world_.rank);
    } catch (...) {
        return {};
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override {
        auto const place = std::find(ranks.begin(), ranks.end(), world_.rank);
        bool const inside = place != ranks.end();
        drain();  // NCCL does not split a communicator that has something under way
        workspace space = inside ? make_workspace(device_) : workspace{};
        nccl_comm part = comm_.split(inside ? 0 : no_color, static_cast<int>(place - ranks.begin()), world_.deadline);
        if (!inside) return nullptr;
        world in_part;
        in_part.rank = static_cast<int>(place - ranks.begin());
        in_part.size = static_cast<int>(ranks.size());
        in_part.crowded = world_.crowded;
        in_part.speaker = fmt::format("{} of a process set of {}", world_.speaker, ranks.size());
        in_part.deadline = world_.deadline;
        for (int const rank : ranks) {
            in_part.hosts.push_back(world_.hosts[static_cast<std::size_t>(rank)]);
            in_part.processes.push_back(world_.processes[static_cast<std::size_t>(rank)]);
        }
        return std::make_unique<nccl_backend>(std::move(in_part), std::move(space), std::move(part));
    }

  private:
    using kind = collective::kind;

    cuda::stream_handle stream() const noexcept { return space_.stream.get().handle; }
    void check(int code, std::string_view call) const { cuda::check(device_->with(), code, call); }
    collective_slot& at(ticket which) { return slots_.at(which); }

    static bool is_empty(collective const& what) noexcept {
        return what.what != kind::barrier && what.in.count == 0 && what.out.count == 0;
    }

    reduction_plan plan_for(collective const& what) const {
        if (what.what != kind::allreduce && what.what != kind::reducescatter) return {};
        return plan_reduction(what.how, what.in.type, what.scale, world_.size);
    }

    void load_kernels(collective const& what) {
        if (kernels_) return;
        try {
            kernels_ = cuda::fusion_kernels::load(device_);
        } catch (error const& problem) {
            throw_error(problem.code(), "{}: {} of {} with the factors {} and {} needs kernels on the GPU: {}", world_.speaker,
                        to_string(what.how), to_string(what.in.type), what.scale.before, what.scale.after, problem.what());
        }
    }

    ticket take_slot() {
        return slots_.take([&](collective_slot& made) {
            made.given = cuda::make_event(*device_);
            made.finished = cuda::make_event(*device_);
        });
    }

    void put_back(ticket which) {
        collective_slot& through = at(which);
        through.at = collective_slot::stage::idle;
        through.failure = nullptr;
        slots_.put_back(which);
    }

    op operation_for(reduction_plan const& plan, type element) {
        if (!plan.scaled_sum) return plan.how;
        for (auto const& known : scaled_sums_)
            if (known.element == element && known.factor == plan.factor) return known.how;
        if (scaled_sums_.size() == most_scaled_sums) {  // the factors change with every step
            op const oldest = scaled_sums_.front().how;
            scaled_sums_.erase(scaled_sums_.begin());
            comm_.use([&](comm_handle comm) { comm_.check(comm_.with().destroy_op(oldest, comm), "ncclRedOpDestroy"); });
        }
        scaled_sum made{element, plan.factor, op::sum};
        float narrow = static_cast<float>(plan.factor);
        double wide = plan.factor;
        std::uint16_t bits = element == type::f16 ? half(narrow).bits() : bfloat16(narrow).bits();
        void* const scalar = element == type::f64   ? static_cast<void*>(&wide)
                             : element == type::f32 ? static_cast<void*>(&narrow)
                                                    : static_cast<void*>(&bits);
        comm_.use([&](comm_handle comm) {
            comm_.check(comm_.with().make_scaled_sum(&made.how, scalar, element, scalar_on_host, comm),
                        "ncclRedOpCreatePreMulSum");
        });
        scaled_sums_.push_back(made);
        return made.how;
    }

    /// Scales the input into memory where the reduction will find it.
    void scale_before(collective_slot& next) {
        tensor_view target = next.what.out;
        if (next.what.what == kind::reducescatter) {
            if (next.scaled_bytes < next.what.in.bytes()) {
                std::size_t const wanted = std::bit_ceil(next.what.in.bytes());
                retired_.push_back(std::move(next.scaled));  // freeing it would wait for the device, and so for other ranks
                next.scaled_bytes = 0;
                next.scaled = cuda::make_memory(*device_, wanted);
                next.scaled_bytes = wanted;
            }
            target = next.what.in;
            target.data = std::bit_cast<void*>(next.scaled.get().handle);
        }
        if (!next.before) next.before.emplace(kernels_);
        next.before->prepare(std::span(&next.what.in, 1), std::span(&target, 1), next.reduce.before, stream());
        next.before->run(stream());
        next.what.in = target;
    }

    /// Hands a queued collective to NCCL.
    void put_on_stream(collective_slot& next) {
        check(device_->with().stream_wait_event(stream(), next.given.get().handle, 0), "cuStreamWaitEvent");
        if (next.reduce.before != 1) scale_before(next);
        op const how = operation_for(next.reduce, type_of(next.what.in.type));
        auto const result = comm_.use([&](comm_handle comm) {
            enqueue_place const place{comm_.with(), comm,        reinterpret_cast<stream_handle>(stream()),
                                      world_.rank,  world_.size, std::bit_cast<void*>(space_.scratch.get().handle)};
            return enqueue(place, next.what, how);
        });
        comm_.check(result.code, result.call);
        next.at = collective_slot::stage::starting;
    }

    /// Completes a collective that NCCL has put on the stream: adds the factor that comes after, and the event.
    void put_behind(collective_slot& next) {
        if (next.reduce.after != 1) {
            if (!next.after) next.after.emplace(kernels_);
            next.after->prepare(std::span(&next.what.out, 1), std::span(&next.what.out, 1), next.reduce.after, stream());
            next.after->run(stream());
        }
        check(device_->with().event_record(next.finished.get().handle, stream()), "cuEventRecord");
        next.at = collective_slot::stage::running;
    }

    /// Moves everything as far as possible without waiting. Throws if something fails.
    void advance() {
        while (!queue_.empty()) {
            collective_slot& next = at(queue_.front());
            if (next.at == collective_slot::stage::queued) put_on_stream(next);
            if (comm_.state() == in_progress) break;
            put_behind(next);
            running_.push_back(queue_.front());
            queue_.pop_front();
        }
        while (!running_.empty()) {
            collective_slot& oldest = at(running_.front());
            int const code = device_->with().event_query(oldest.finished.get().handle);
            if (code == cuda::error_not_ready) {
                comm_.state();  // the network may have failed meanwhile
                return;
            }
            check(code, "cuEventQuery");
            comm_.require_alive();  // after an abort the device reports as finished what has no result
            oldest.at = collective_slot::stage::ended;
            running_.pop_front();
        }
    }

    /// The same, but a failure fails everything under way.
    void advance_all() {
        if (queue_.empty() && running_.empty()) return;
        try {
            cuda::device::scope const current(*device_);
            advance();
        } catch (...) {
            fail_all(with_ranks(std::current_exception()));
        }
    }

    /// An error of NCCL's network means that a rank has left or cannot be reached: returns comm_error (errc::peer_failed) instead, with the ranks known to be
    /// gone. Returns other failures as they are.
    std::exception_ptr with_ranks(std::exception_ptr const& failure) const {
        try {
            std::rethrow_exception(failure);
        } catch (nccl_error const& problem) {
            if (problem.native_code() != remote_error && problem.native_code() != system_error) return failure;
            auto const lost = lost_ranks(world_.processes, world_.rank);
            return std::make_exception_ptr(
                comm_error(errc::peer_failed,
                           fmt::format("{}: NCCL lost a rank, so that this {}{}. Look at the other ranks ({})", world_.speaker,
                                       lost_rank_words, lost.empty() ? "" : "; waiting for " + describe_late(lost, world_.hosts),
                                       problem.what()),
                           ranks_of(lost)));
        } catch (...) {
            return failure;
        }
    }

    /// Waits until nothing is under way. Throws failures meanwhile, and errc::timeout.
    void drain() {
        auto const begin = std::chrono::steady_clock::now();
        while (!queue_.empty() || !running_.empty()) {
            advance_all();
            comm_.require_alive();
            if (world_.deadline.count() > 0 && std::chrono::steady_clock::now() - begin > world_.deadline) {
                auto const why =
                    fmt::format("{}: timed out, what was under way before a process set was made did not finish within {}",
                                world_.speaker, format_duration(world_.deadline));
                comm_.give_up(why);
                throw comm_error(errc::timeout, why);
            }
            std::this_thread::yield();
        }
    }

    void fail_all(std::exception_ptr const& failure) {
        comm_.give_up(fmt::format("{}: a collective failed", world_.speaker));
        for (auto const* waiting : {&queue_, &running_})
            for (ticket const which : *waiting) {
                at(which).failure = failure;
                at(which).at = collective_slot::stage::ended;
            }
        queue_.clear();
        running_.clear();
    }

    world world_;
    workspace space_;  // before whatever uses its device
    std::shared_ptr<cuda::device const> device_;
    nccl_comm comm_;
    std::shared_ptr<cuda::fusion_kernels const> kernels_;  // loaded when first needed
    std::vector<scaled_sum> scaled_sums_;                  // NCCL frees the rest with the communicator
    std::vector<cuda::unique_memory> retired_;             ///< smaller ones that slots had before
    detail::slot_table<collective_slot> slots_;
    std::deque<ticket> queue_;    ///< not yet on the device; the first may be starting
    std::deque<ticket> running_;  ///< on the device, in its order
};

}  // namespace

workspace make_workspace(std::shared_ptr<cuda::device const> on) {
    workspace made{on, cuda::make_stream(*on), cuda::make_memory(*on, 16)};
    cuda::device::scope const current(*on);
    cuda::check(on->with(), on->with().fill(made.scratch.get().handle, 0, 16, made.stream.get().handle), "cuMemsetD8Async");
    return made;
}

std::unique_ptr<collective_backend> make_collectives(world ranks, workspace space, nccl_comm comm) {
    return std::make_unique<nccl_backend>(std::move(ranks), std::move(space), std::move(comm));
}

}  // namespace muster::nccl
