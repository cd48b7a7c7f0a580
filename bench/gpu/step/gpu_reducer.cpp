#include "bench/gpu/step/gpu_reducer.hpp"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/fail_together.hpp"
#include "comm/gradients/bucket_plan.hpp"
#include "comm/nccl/library/nccl_comm.hpp"
#include "comm/nccl/library/nccl_library.hpp"

namespace muster {

namespace {

class lone_reducer final : public gpu_reducer {
  public:
    explicit lone_reducer(gpu_compute const& with) : with_(with) {}
    bool in_graph() const noexcept override { return true; }
    std::string_view name() const noexcept override { return "none: one rank"; }
    void reduce(std::size_t) override {}
    void join() override {}
    void wait_for(cuda::event_handle event) override {
        with_.check(with_.driver().event_synchronize(event), "cuEventSynchronize");
    }
    void wait() override { with_.synchronize(); }

  private:
    gpu_compute const& with_;
};

/// By the communicator, which orders itself behind the stream by events of its own.
class communicator_reducer final : public gpu_reducer {
  public:
    communicator_reducer(communicator& ranks, comm_options const& options, gpu_compute const& with, float* gradients,
                         std::vector<gpu_bucket> buckets)
        : with_(with), gradients_(gradients), buckets_(std::move(buckets)), device_(ranks.for_device(options)) {
        device_.use_stream(with.stream());
        for (std::size_t i = 0; i < buckets_.size(); ++i) names_.push_back(fmt::format("bucket {}", i));
        under_way_.resize(buckets_.size());
        name_ = fmt::format("{} between the graphs", device_.backend());
    }
    bool in_graph() const noexcept override { return false; }
    std::string_view name() const noexcept override { return name_; }
    void reduce(std::size_t index) override {
        auto const& of = buckets_[index];
        under_way_[index].wait();  // of the step before
        under_way_[index] = device_.allreduce(names_[index], {gradients_ + of.first, of.count, dtype::f32, memory_kind::device},
                                              reduction::average);
    }
    void join() override {
        for (auto& each : under_way_) each.order(with_.stream());
    }
    /// reduce() has waited for the reductions of the step before, so that nobody else is waited for here.
    void wait_for(cuda::event_handle event) override {
        with_.check(with_.driver().event_synchronize(event), "cuEventSynchronize");
    }
    void wait() override {
        for (auto& each : under_way_) each.wait();
        with_.synchronize();
    }

  private:
    gpu_compute const& with_;
    float* gradients_;
    std::vector<gpu_bucket> buckets_;
    communicator device_;
    std::vector<std::string> names_;
    std::vector<operation> under_way_;
    std::string name_;
};

/// By NCCL's own calls on a stream of their own, ordered by events: that is what a graph can hold.
class captured_reducer final : public gpu_reducer {
  public:
    captured_reducer(communicator& ranks, gpu_compute const& with, float* gradients, std::vector<gpu_bucket> buckets)
        : with_(with),
          gradients_(gradients),
          buckets_(std::move(buckets)),
          deadline_(ranks.options().deadline),
          stream_(cuda::make_stream(with.on())),
          reduced_(cuda::make_event(with.on())),
          finished_(cuda::make_event(with.on())),
          comm_(connect(ranks, with)) {
        for (std::size_t i = 0; i < buckets_.size(); ++i) ready_.push_back(cuda::make_event(with.on()));
    }
    ~captured_reducer() override {
        if (std::uncaught_exceptions() > 0)
            comm_.give_up("the training on this rank has failed");
        else
            comm_.end(deadline_);
    }
    bool in_graph() const noexcept override { return true; }
    std::string_view name() const noexcept override { return "nccl in the graph"; }
    void reduce(std::size_t index) override {
        auto const& of = buckets_[index];
        auto const& driver = with_.driver();
        auto const ready = ready_[index].get().handle;
        with_.check(driver.event_record(ready, with_.stream()), "cuEventRecord");
        with_.check(driver.stream_wait_event(stream_.get().handle, ready, 0), "cuStreamWaitEvent");
        float* const place = gradients_ + of.first;
        int const code = comm_.use([&](nccl::comm_handle comm) {
            return comm_.with().all_reduce(place, place, of.count, nccl::type::f32, nccl::op::average, comm,
                                           std::bit_cast<nccl::stream_handle>(stream_.get().handle));
        });
        comm_.check(code, "ncclAllReduce");
        while (comm_.state() == nccl::in_progress) std::this_thread::yield();
    }
    void join() override {
        auto const& driver = with_.driver();
        with_.check(driver.event_record(reduced_.get().handle, stream_.get().handle), "cuEventRecord");
        with_.check(driver.stream_wait_event(with_.stream(), reduced_.get().handle, 0), "cuStreamWaitEvent");
    }
    void wait_for(cuda::event_handle event) override {
        auto const began = std::chrono::steady_clock::now();
        while (true) {
            int const code = with_.driver().event_query(event);
            if (code == cuda::success) break;
            if (code != cuda::error_not_ready) with_.check(code, "cuEventQuery");
            comm_.state();  // throws what has happened to NCCL
            if (deadline_.count() > 0 && std::chrono::steady_clock::now() - began > deadline_) give_up();
            std::this_thread::yield();
        }
        comm_.require_alive();
    }
    void wait() override {
        with_.check(with_.driver().event_record(finished_.get().handle, with_.stream()), "cuEventRecord");
        wait_for(finished_.get().handle);
    }

  private:
    [[noreturn]] void give_up() {
        auto const why = fmt::format(
            "the GPU has not finished its steps after {:g} s: a rank does not come to an allreduce, or hangs", deadline_.count());
        comm_.give_up(why);
        throw comm_error(errc::timeout, why + "; look which rank has ended, or give a longer MUSTER_COMM_DEADLINE");
    }

    static nccl::nccl_comm connect(communicator& ranks, gpu_compute const& with) {
        auto const& found = nccl::find_library();
        run_on_all(ranks, "find NCCL", [&] {
            if (found.use == nullptr) throw error(errc::unavailable, "nccl: " + found.why_not);
        });
        nccl::unique_id id{};
        run_on_all(ranks, "name NCCL's communicator", [&] {
            if (ranks.rank() != 0) return;
            if (int const code = found.use->get_unique_id(&id); code != nccl::success)
                throw nccl_error("ncclGetUniqueId", code, found.use->error_string(code));
        });
        ranks.broadcast("NCCL's id", {id.bytes, sizeof id.bytes, dtype::u8, memory_kind::host}, 0).wait();
        return nccl::nccl_comm::create(
            nccl::runtime::acquire(*found.use), *found.use, with.device(), id, ranks.rank(), ranks.size(),
            fmt::format("rank {} of {} on {}", ranks.rank(), ranks.size(), ranks.who().host), ranks.options().deadline);
    }

    gpu_compute const& with_;
    float* gradients_;
    std::vector<gpu_bucket> buckets_;
    duration deadline_;
    cuda::unique_stream stream_;
    std::vector<cuda::unique_event> ready_;
    cuda::unique_event reduced_, finished_;
    nccl::nccl_comm comm_;
};

}  // namespace

std::vector<gpu_bucket> plan_gpu_buckets(parameter_table const& table, std::size_t layers, std::size_t bucket_bytes) {
    std::vector<std::size_t> elements;
    for (auto const& row : table.rows()) elements.push_back(row.shape.count());
    std::vector<gpu_bucket> out;
    for (auto const& range : plan_buckets(elements, bucket_bytes, bucket_bytes)) {
        gpu_bucket next;
        next.first = table.rows()[range.first].first;
        std::size_t const last = range.first + range.count - 1;
        next.count = table.rows()[last].first + elements[last] - next.first;
        for (std::size_t i = 0; i < layers; ++i)
            if (auto const& rows = table.of_layer(i); last >= rows.first && last < rows.first + rows.count) next.after_layer = i;
        out.push_back(next);
    }
    return out;
}

std::unique_ptr<gpu_reducer> make_gpu_reducer(gpu_reduction how, communicator& ranks, comm_options const& device_options,
                                              gpu_compute const& with, float* gradients, std::vector<gpu_bucket> buckets) {
    if (ranks.size() == 1) return std::make_unique<lone_reducer>(with);
    if (how == gpu_reduction::graph) return std::make_unique<captured_reducer>(ranks, with, gradients, std::move(buckets));
    return std::make_unique<communicator_reducer>(ranks, device_options, with, gradients, std::move(buckets));
}

}  // namespace muster
