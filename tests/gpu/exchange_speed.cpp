#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "comm/communicator.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/exchange/exchange.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "gpu_speed.hpp"
#include "gpu_tensors.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;

constexpr int skipped = 77;

constexpr option_row gpu_exchange_options[]{
    {"gradients", 0, "SET", "resnet50, mnist, cifar or gpt2", "resnet50"},
    {"repetitions", 0, "N", "repetitions that are counted, after two that are not", "15"},
    {"json", 0, "", "the results as JSON", ""},
};

struct timed_gpu_exchange {
    std::string name;
    std::function<void()> run;
    gpu_tensors const* target = nullptr;
    double factor = 1;  ///< target then holds what was filled in, times this
    std::vector<double> us{};
};

/// The tensors and the ways of reducing them. All ranks make the same.
class gpu_exchange {
  public:
    gpu_exchange(identity const& who, exchange_options const& options, std::shared_ptr<cuda::device const> on,
                 std::vector<std::size_t> const& counts)
        : on_(std::move(on)),
          stream_(cuda::make_stream(*on_)),
          all_(who, options),
          host_(communicator::create(who, host_options(options.comm))),
          bare_(host_.for_device(options.comm)),
          in_(*on_, counts, dtype::f32, gpu_tensors::layout::apart),
          out_(*on_, counts, dtype::f32, gpu_tensors::layout::apart),
          fused_in_(*on_, counts, dtype::f32, gpu_tensors::layout::fused),
          fused_out_(*on_, counts, dtype::f32, gpu_tensors::layout::fused) {
        bare_.use_stream(queue());
        in_.fill(queue());
        fused_in_.fill(queue());
        for (std::size_t i = 0; i < counts.size(); ++i) names_.push_back("grad." + std::to_string(i));
        for (std::size_t i = 0; i < counts.size(); ++i) {
            group_.push_back({names_[i], in_.views()[i], out_.views()[i]});
            fused_group_.push_back({names_[i], fused_in_.views()[i], fused_out_.views()[i]});
        }
        exchange_call call;
        call.stream = queue();
        prepared_ = all_.prepare("prepared", group_, reduction::sum, call);
        prepared_fused_ = all_.prepare("prepared, fused", fused_group_, reduction::sum, call);
        if (cuda::kernels_missing()) return;
        call.wire = compression::bf16;
        prepared_bf16_ = all_.prepare("prepared, bf16", group_, reduction::sum, call);
    }

    std::vector<timed_gpu_exchange> rows() {
        double const ranks = all_.size();
        std::vector<timed_gpu_exchange> made{
            {"exchange, one by one submitted", [this] { submit_all(); }, &out_, ranks},
            {"exchange, prepared", [this] { start(prepared_); }, &out_, ranks},
            {"exchange, prepared, lying as in the buffer", [this] { start(prepared_fused_); }, &fused_out_, ranks},
            {"nccl alone, one collective a tensor", [this] { one_collective_each(); }, &out_, ranks},
            {"nccl alone, one collective of the buffer", [this] { one_collective(); }, &fused_out_, ranks},
        };
        // bf16 holds the numbers of -125 to 125 and their sums over two ranks.
        if (prepared_bf16_ && all_.size() <= 2)
            made.push_back({"exchange, prepared, as bf16", [this] { start(*prepared_bf16_); }, &out_, ranks});
        return made;
    }

    void clear() {
        out_.clear(queue());
        fused_out_.clear(queue());
        on_->with().stream_synchronize(queue());
    }
    bool holds(timed_gpu_exchange const& what) const { return what.target->fault(queue(), what.factor).empty(); }
    double longest(double us) {
        host_.allreduce("longest", view_of(std::span(&us, 1)), reduction::max).wait();
        return us;
    }
    void barrier() { host_.barrier().wait(); }
    exchange& all() noexcept { return all_; }
    std::size_t tensors() const noexcept { return names_.size(); }
    std::size_t bytes() const noexcept { return fused_in_.bytes(); }

  private:
    static comm_options host_options(comm_options options) {
        options.backend.clear();
        options.memory = memory_kind::host;
        return options;
    }
    cuda::stream_handle queue() const noexcept { return stream_.get().handle; }

    void start(prepared_group& group) { group.start(queue()).wait(); }
    void submit_all() {
        exchange_call call;
        call.stream = queue();
        std::vector<exchange_handle> handles;
        for (std::size_t i = names_.size(); i-- > 0;)  // as a backward pass does, the last first
            handles.push_back(all_.allreduce(names_[i], group_[i].in, group_[i].out, reduction::sum, call));
        for (auto const& each : handles) each.wait();
    }
    void one_collective_each() {
        std::vector<operation> under_way;
        for (std::size_t i = names_.size(); i-- > 0;)
            under_way.push_back(bare_.allreduce(names_[i], group_[i].in, group_[i].out, reduction::sum));
        for (auto& each : under_way) each.wait();
    }
    void one_collective() {
        auto const whole = [](gpu_tensors const& of) {
            tensor_view const& last = of.views().back();
            auto const* const begin = static_cast<float const*>(of.views().front().data);
            auto const count = static_cast<std::size_t>(static_cast<float const*>(last.data) - begin) + last.count;
            return tensor_view{of.views().front().data, count, dtype::f32, memory_kind::device};
        };
        bare_.allreduce("buffer", whole(fused_in_), whole(fused_out_), reduction::sum).wait();
    }

    std::shared_ptr<cuda::device const> on_;
    cuda::unique_stream stream_;
    exchange all_;
    communicator host_, bare_;
    gpu_tensors in_, out_, fused_in_, fused_out_;
    std::vector<std::string> names_;
    std::vector<named_tensor> group_, fused_group_;
    prepared_group prepared_, prepared_fused_;
    std::optional<prepared_group> prepared_bf16_;
};

int measure(gpu_exchange& bench, std::vector<timed_gpu_exchange>& rows, int repetitions) {
    int wrong = 0;
    for (int repetition = -2; repetition < repetitions; ++repetition)
        for (auto& each : rows) {
            bench.clear();
            bench.barrier();
            auto const begin = clock::now();
            each.run();
            double const us = bench.longest(std::chrono::duration<double, std::micro>(clock::now() - begin).count());
            if (!bench.holds(each)) ++wrong;
            if (repetition >= 0) each.us.push_back(us);
        }
    double const all_wrong = bench.longest(wrong);  // on the worst rank
    return static_cast<int>(all_wrong);
}

void print(gpu_exchange& bench, given_options const& given, std::string const& gpu, std::vector<timed_gpu_exchange> const& rows,
           int wrong) {
    double const ranks = bench.all().size();
    auto const busbw = [&](double us) { return 2 * (ranks - 1) / ranks * static_cast<double>(bench.bytes()) / us / 1e3; };
    if (given.has("json")) {
        nlohmann::json out{{"schema", "muster.gpu-exchange/1"},
                           {"ranks", bench.all().size()},
                           {"gpu", gpu},
                           {"gradients", given.text("gradients")},
                           {"tensors", bench.tensors()},
                           {"bytes", bench.bytes()},
                           {"wrong", wrong},
                           {"rows", nlohmann::json::array()}};
        for (auto const& each : rows) out["rows"].push_back({{"name", each.name}, {"us", each.us}});
        fmt::print("{}\n", out.dump(1));
        return;
    }
    fmt::print("{} ranks, {}, {} of {} tensors, {} bytes\n\n{:46}{:>12}{:>12}{:>12}{:>14}\n", bench.all().size(), gpu,
               given.text("gradients"), bench.tensors(), bench.bytes(), "", "median us", "smallest", "largest", "busbw GB/s");
    for (auto const& each : rows) {
        auto const s = summarise(each.us);
        fmt::print("{:46}{:12.1f}{:12.1f}{:12.1f}{:14.2f}\n", each.name, s.median, s.smallest, s.largest, busbw(s.median));
    }
    fmt::print("\n{} wrong\n", wrong);
}

}  // namespace

constexpr command_row exchange_speed_row{
    .name = "exchange",
    .summary = "gradients on GPUs through the exchange, beside NCCL alone",
    .synopsis = "[options]",
    .examples = "  muster run -n 2 -- gpu_speed exchange --gradients resnet50\n",
    .options = gpu_exchange_options,
    .description =
        "Measures allreduces of a network's gradients in device memory: through the exchange (named, negotiated, packed by\n"
        "kernels), and on its backend without it. To be started on several ranks.",
    .closing = R"(
A repetition runs every row once, in turns: from the first submission until the device has finished the last tensor, on the
slowest rank. Results are checked. Without a GPU or NCCL it prints so and ends with 77.
)",
};

int exchange_speed(given_options const& given, environment const& variables) {
    auto const set = gradients_of(given.text("gradients"));
    int const repetitions = count_of(given, "repetitions");
    identity const who = identify(variables);
    auto options = read_exchange_options(variables);
    if (auto const why = nccl_unavailable(who, options.comm)) {
        fmt::print("SKIPPED: {}\n", *why);
        return skipped;
    }
    auto const on =
        cuda::device::open(cuda::find_driver(), cuda::choose_device(cuda::find_driver(), options.comm.device, who.local_rank));
    options.comm.device = on->ordinal();
    gpu_exchange bench(who, options, on, set.elements);
    auto rows = bench.rows();
    int const wrong = measure(bench, rows, repetitions);
    if (who.rank == 0) print(bench, given, on->name(), rows, wrong);
    return wrong == 0 ? 0 : 1;
}

}  // namespace muster
