#include "comm/nccl/chunked_allreduce_backend.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <exception>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/backend/slot_table.hpp"
#include "comm/cuda/handles.hpp"
#include "comm/hierarchical/hierarchical_backend.hpp"

namespace muster::nccl {

namespace {

/// One collective under way.
struct slot {
    enum class stage {
        idle,
        staged,    ///< `inner` is of the staged backend
        queued,    ///< an allreduce that waits for those before it, or is the first of them
        enqueued,  ///< its last gather, `inner`, is with the node's backend
        ended,     ///< by a failure
    };
    stage at = stage::idle;
    ticket inner = 0;
    collective what;
    cuda::unique_event given;  ///< recorded on the program's stream when it was started
    std::exception_ptr failure;
};

/// A part of the first allreduce of the queue, between its scatter and its gather.
struct chunk {
    enum class stage { idle, scatter, down, across, reduced };
    stage at = stage::idle;
    ticket inner = 0;  ///< scatter, down: of the node's backend; across: of that
    collective what;
    tensor_view share;  ///< this rank's, in `memory`
    cuda::unique_event copied;
    pinned_memory memory;
};

class chunked_allreduce_backend final : public collective_backend {
  public:
    chunked_allreduce_backend(chunked_allreduce_parts parts, std::size_t from_bytes, std::size_t chunk_bytes)
        : device_(std::move(parts.on)),
          groups_(std::move(parts.groups)),
          from_bytes_(from_bytes),
          chunk_bytes_(chunk_bytes),
          gate_(cuda::make_stream(*device_)),
          down_(cuda::make_stream(*device_)),
          up_(cuda::make_stream(*device_)),
          staged_(std::move(parts.staged)),
          node_(std::move(parts.node)),
          across_(std::move(parts.across)) {
        for (auto& each : chunks_) each.copied = cuda::make_event(*device_);
    }

    ~chunked_allreduce_backend() override {
        bool const in_order = !failed_ && queue_.empty() && enqueued_.empty();
        node_.reset();  // after which nothing of ours waits for the node's other ranks
        across_.reset();
        staged_.reset();
        if (in_order) return;
        detail::keep_forever(std::move(device_));  // the device or the network may still use all of it
        for (auto* const stream : {&gate_, &down_, &up_}) detail::keep_forever(std::move(*stream));
        detail::keep_forever(std::move(chunks_));
        detail::keep_forever(std::move(slots_));
    }

    std::vector<std::string> const& hosts() const noexcept override { return staged_->hosts(); }
    bool crowded() const noexcept override { return staged_->crowded(); }
    bool reaches(memory_kind where) const noexcept override { return where == memory_kind::device; }
    void const* native() const noexcept override { return staged_->native(); }

    ticket start(collective const& what) override {
        bool const in_steps = node_ != nullptr && what.what == collective::kind::allreduce && what.out.count != 0 &&
                              what.out.bytes() >= from_bytes_;
        ticket const inner = in_steps ? 0 : staged_->start(what);
        if (!in_steps && inner == 0) return 0;
        ticket const which = take_slot();
        slot& next = at(which);
        next.inner = inner;
        next.at = in_steps ? slot::stage::queued : slot::stage::staged;
        if (!in_steps) return which;
        next.what = what;
        cuda::device::scope const current(*device_);
        check(with().event_record(next.given.get().handle, static_cast<cuda::stream_handle>(what.stream)), "cuEventRecord");
        queue_.push_back(which);
        advance_all();
        return which;
    }

    bool done(ticket which) override {
        slot& asked = at(which);
        if (asked.at == slot::stage::staged) return done_staged(which);
        if (asked.at == slot::stage::queued) advance_all();
        if (asked.at == slot::stage::queued) return false;
        if (asked.at == slot::stage::enqueued) {
            bool ended = false;
            guarded([&] { ended = take_if_done(asked.inner); });
            if (!ended && !asked.failure) return false;
        }
        std::erase(enqueued_, which);
        auto const failure = std::exchange(asked.failure, nullptr);
        put_back(which);
        if (failure) std::rethrow_exception(failure);
        return true;
    }

    void progress() override {
        staged_->progress();
        advance_all();
    }

    bool order(ticket which, void* on) override {
        slot& asked = at(which);
        if (asked.at == slot::stage::staged) return staged_->order(asked.inner, on);
        if (asked.at == slot::stage::queued) advance_all();
        if (asked.failure) std::rethrow_exception(asked.failure);
        return asked.at == slot::stage::enqueued && node_->order(asked.inner, on);
    }

    void abandon(ticket which) noexcept override {
        slot& lost = at(which);
        if (lost.at == slot::stage::staged) return staged_->abandon(lost.inner);
        staged_->abandon(0);  // the whole world is told of it, and not only the group in which it happened
        try {
            throw comm_error(errc::peer_failed, "an allreduce in steps was given up, and what was under way has no result");
        } catch (...) {
            fail_all(std::current_exception());
        }
        lost.at = slot::stage::idle;  // and never taken again
    }

    std::vector<late_rank> late_ranks(ticket which) noexcept override try {
        slot const& asked = at(which);
        if (asked.at == slot::stage::staged) return staged_->late_ranks(asked.inner);
        if (auto known = staged_->late_ranks(0); !known.empty()) return known;
        // The rank that holds up the next chunk to be gathered holds up everything.
        chunk const& oldest = chunks_[gathered_ % chunks_.size()];
        bool const on_network = !queue_.empty() && oldest.at == chunk::stage::across && oldest.inner != 0;
        auto late = on_network ? across_->late_ranks(oldest.inner) : node_->late_ranks(0);
        for (auto& each : late) each.rank = (on_network ? groups_.across : groups_.local)[static_cast<std::size_t>(each.rank)];
        return late;
    } catch (...) {
        return {};
    }

    std::unique_ptr<collective_backend> subset(std::span<int const> ranks) override { return staged_->subset(ranks); }

  private:
    cuda::driver const& with() const noexcept { return device_->with(); }
    void check(int code, std::string_view call) const { cuda::check(with(), code, call); }
    slot& at(ticket which) { return slots_.at(which); }

    ticket take_slot() {
        return slots_.take([&](slot& made) { made.given = cuda::make_event(*device_); });
    }

    void put_back(ticket which) {
        at(which).at = slot::stage::idle;
        slots_.put_back(which);
    }

    bool done_staged(ticket which) {
        try {
            if (!staged_->done(at(which).inner)) return false;
        } catch (...) {
            put_back(which);
            throw;
        }
        put_back(which);
        return true;
    }

    /// Whether `which` of the node's backend has finished; it is void then, as it is if this throws.
    bool take_if_done(ticket& which) {
        ticket const asked = std::exchange(which, 0);
        if (node_->done(asked)) return true;
        which = asked;
        return false;
    }

    /// Runs `body` in the device's context; what it throws is the failure of everything in steps.
    template <typename Body>
    void guarded(Body&& body) {
        try {
            cuda::device::scope const current(*device_);
            body();
        } catch (...) {
            fail_all(std::current_exception());
        }
    }

    void advance_all() {
        if (queue_.empty() && gathers_.empty()) return;
        guarded([&] {
            while (!gathers_.empty() && take_if_done(gathers_.front())) gathers_.pop_front();
            while (!queue_.empty() && put_through(at(queue_.front()))) {
                at(queue_.front()).at = slot::stage::enqueued;
                enqueued_.push_back(queue_.front());
                queue_.pop_front();
                scattered_ = gathered_ = 0;
            }
        });
    }

    /// The first allreduce of the queue, as far as it goes; true behind its last gather.
    bool put_through(slot& first) {
        std::size_t const count = first.what.out.count;
        std::size_t const each = elements_of_chunk(chunk_bytes_, first.what.out.type, groups_.local.size());
        std::size_t const chunks = (count + each - 1) / each;
        while (gathered_ < chunks) {
            for (std::size_t i = gathered_; i < scattered_ && reaches_network(chunk_at(i)); ++i) {
            }
            if (scattered_ < chunks && scattered_ - gathered_ < chunks_.size())
                scatter(first, {scattered_ * each, std::min(each, count - scattered_ * each)});
            else if (chunk_at(gathered_).at == chunk::stage::reduced)
                gather(first, gathered_ + 1 == chunks);
            else
                return false;
        }
        return true;
    }

    chunk& chunk_at(std::size_t number) { return chunks_[number % chunks_.size()]; }

    void scatter(slot const& first, element_range const& part) {
        chunk& next = chunk_at(scattered_);
        next.what = first.what;
        next.what.in = part_of(first.what.in, part);
        next.what.out = part_of(first.what.out, part);
        node_reduction const steps(groups_, next.what);
        next.share = steps.share();
        next.share.data = next.memory.at_least(*device_, next.share.bytes() + 1);
        next.share.where = memory_kind::host;
        collective step = steps.scatter();
        // Later chunks follow on what the node's backend has already.
        auto const behind = scattered_ == 0 ? gate_.get().handle : up_.get().handle;
        if (scattered_ == 0) check(with().stream_wait_event(behind, first.given.get().handle, 0), "cuStreamWaitEvent");
        step.stream = behind;
        next.inner = node_->start(step);
        next.at = chunk::stage::scatter;
        ++scattered_;
    }

    /// Moves a chunk as far as it goes; whether the network has got it. The next one may go there only then.
    bool reaches_network(chunk& of) {
        if (of.at == chunk::stage::scatter) {
            auto const down = down_.get().handle;
            if (!node_->order(of.inner, down)) return false;
            auto const from = std::bit_cast<cuda::device_address>(node_reduction(groups_, of.what).share().data);
            if (of.share.count != 0)
                check(with().copy_device_to_host(of.share.data, from, of.share.bytes(), down), "cuMemcpyDtoHAsync");
            check(with().event_record(of.copied.get().handle, down), "cuEventRecord");
            of.at = chunk::stage::down;
        }
        if (of.at == chunk::stage::down) {
            int const code = with().event_query(of.copied.get().handle);
            if (code == cuda::error_not_ready) return false;
            check(code, "cuEventQuery");
            // Only now it is known to be a result: after an abort the device is through with what is none.
            if (!take_if_done(of.inner)) return false;
            of.inner = across_->start(node_reduction(groups_, of.what).across(of.share));
            of.at = chunk::stage::across;
        }
        if (of.at == chunk::stage::across) {
            ticket const inner = std::exchange(of.inner, 0);
            if (inner == 0 || across_->done(inner)) {
                node_reduction(groups_, of.what).finish(of.share);
                of.at = chunk::stage::reduced;
            } else {
                of.inner = inner;
            }
        }
        return true;
    }

    void gather(slot& first, bool last) {
        chunk& next = chunk_at(gathered_);
        auto const up = up_.get().handle;
        collective step = node_reduction(groups_, next.what).gather();
        if (next.what.out.count % groups_.local.size() == 0) step.receive_counts.clear();  // NCCL is faster so
        if (step.in.count != 0)
            check(with().copy_host_to_device(std::bit_cast<cuda::device_address>(step.in.data), next.share.data,
                                             next.share.bytes(), up),
                  "cuMemcpyHtoDAsync");
        step.stream = up;
        ticket const which = node_->start(step);
        if (last)
            first.inner = which;
        else
            gathers_.push_back(which);
        next.at = chunk::stage::idle;
        ++gathered_;
    }

    /// Takes everything in steps from the backends below, and makes `failure` that of all allreduces under way.
    void fail_all(std::exception_ptr const& failure) noexcept {
        failed_ = true;
        for (chunk& each : chunks_) {
            ticket const inner = std::exchange(each.inner, 0);
            if (each.at == chunk::stage::across && inner != 0) {
                across_->late_ranks(inner);  // by which it knows whom it gives up
                across_->abandon(inner);
            } else if (inner != 0) {
                node_->abandon(inner);
            }
            each.at = chunk::stage::idle;
        }
        for (ticket const each : gathers_)
            if (each != 0) node_->abandon(each);
        gathers_.clear();
        for (ticket const which : enqueued_)
            if (ticket const inner = std::exchange(at(which).inner, 0); inner != 0) node_->abandon(inner);
        for (ticket const which : queue_) end(which, failure);
        for (ticket const which : enqueued_) end(which, failure);
        queue_.clear();
        enqueued_.clear();
        scattered_ = gathered_ = 0;
    }

    void end(ticket which, std::exception_ptr const& failure) noexcept {
        at(which).failure = failure;
        at(which).at = slot::stage::ended;
    }

    std::shared_ptr<cuda::device const> device_;
    node_groups groups_;
    std::size_t from_bytes_, chunk_bytes_;
    cuda::unique_stream gate_;  ///< what an allreduce begins behind
    cuda::unique_stream down_, up_;
    std::unique_ptr<collective_backend> staged_, node_, across_;
    bool failed_ = false;
    detail::slot_table<slot> slots_;
    std::deque<ticket> queue_;      ///< allreduces in steps, in the order of their start
    std::vector<ticket> enqueued_;  ///< those whose last gather is with the device
    std::deque<ticket> gathers_;    ///< of the node's backend: but for the last of each
    // Of the first in the queue:
    std::array<chunk, 2> chunks_;
    std::size_t scattered_ = 0, gathered_ = 0;
};

}  // namespace

std::size_t elements_of_chunk(std::size_t chunk_bytes, dtype type, std::size_t ranks) noexcept {
    return std::max<std::size_t>(1, chunk_bytes / size_of(type) / ranks) * ranks;
}

std::unique_ptr<collective_backend> make_chunked_allreduce_backend(chunked_allreduce_parts parts, std::size_t from_bytes,
                                                                   std::size_t chunk_bytes) {
    return std::make_unique<chunked_allreduce_backend>(std::move(parts), from_bytes, chunk_bytes);
}

}  // namespace muster::nccl
