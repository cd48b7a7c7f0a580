#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.hpp"
#include "base/text_table.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "gpu_speed.hpp"
#include "gpu_tensors.hpp"

namespace muster {

namespace {

constexpr int kernels_skipped = 77;
constexpr double factor = 0.5;

constexpr option_row gpu_kernels_options[]{
    {"device", 0, "N", "which GPU, of those CUDA shows", "0"},
    {"repetitions", 0, "N", "repetitions that are counted", "15"},
    {"blocks", 0, "N", "blocks of a launch; 0: as many as the GPU runs at once", "0"},
    {"driver", 0, "FILE", "the CUDA driver's library; default: libcuda.so.1", ""},
    {"json", 0, "", "the results as JSON", ""},
};

struct kernel_tensors {
    std::string name;
    std::vector<std::size_t> counts;
};

/// The tensors of ResNet-50 in the order in which their gradients become ready, all and as many as fill 64 MiB; many small ones.
std::vector<kernel_tensors> sets() {
    auto all = gradients_of("resnet50").elements;
    std::reverse(all.begin(), all.end());
    std::vector<std::size_t> part;
    std::size_t room = (std::size_t{64} << 20) / 4;
    for (std::size_t const count : all) {
        part.push_back(std::min(count, room));
        room -= part.back();
        if (room == 0) break;
    }
    std::string const some = fmt::format("resnet50: 64 MiB in {}", part.size());
    return {{some, part},
            {fmt::format("resnet50: all {}", all.size()), all},
            {"10,000 of 256 B", std::vector<std::size_t>(10000, 64)}};
}

constexpr std::size_t copies = 4;
constexpr int runs_a_repetition = 20;

/// A row: puts its work on the stream, for the memory set of number `which`.
struct timed_kernel {
    std::string set, name;
    std::size_t bytes = 0;  ///< read and written by one run
    std::function<void(std::size_t which)> run;
    gpu_tensors const* target = nullptr;  ///< of the runs with set of memory 0
    double scale = 1;                     ///< what target holds, as a multiple of what fill() gives
    std::size_t reference = 0;            ///< the row of the driver's single copy
    std::vector<double> gbps{};
};

/// All memory and rows of one set of tensors.
class set_bench {
  public:
    set_bench(kernel_tensors const& set, std::shared_ptr<cuda::fusion_kernels const> kernels, cuda::stream_handle stream,
              std::uint32_t blocks, std::vector<timed_kernel>& rows)
        : set_(set), kernels_(std::move(kernels)), stream_(stream), blocks_(blocks), rows_(rows), reference_(rows.size()) {
        for (std::size_t i = 0; i < copies; ++i) {
            auto const& on = kernels_->on();
            apart_.emplace_back(on, set.counts, dtype::f32, gpu_tensors::layout::apart).fill(stream_);
            fused_.emplace_back(on, set.counts, dtype::f32, gpu_tensors::layout::fused);
            narrow_.emplace_back(on, set.counts, dtype::bf16, gpu_tensors::layout::fused);
            half_.emplace_back(on, set.counts, dtype::f16, gpu_tensors::layout::fused);
            back_.emplace_back(on, set.counts, dtype::f32, gpu_tensors::layout::apart);
            narrow_.back().fill(stream_);
        }
        add_copies();
        add_launch("pack f32", apart_, fused_, 1);
        add_launch("pack f32, scaled", apart_, fused_, factor);
        add_launch("pack f32 as f16, scaled", apart_, half_, factor);
        add_launch("unpack bf16 as f32", narrow_, back_, 1);
        add_launch("pack f32 as bf16, scaled", apart_, narrow_, factor);
    }

  private:
    void copy(cuda::device_address to, cuda::device_address from, std::size_t bytes) const {
        cuda::driver const& with = kernels_->on().with();
        cuda::check(with, with.copy_device_to_device(to, from, bytes, stream_), "cuMemcpyDtoDAsync");
    }

    void add_copies() {
        std::size_t const bytes = 4 * std::accumulate(set_.counts.begin(), set_.counts.end(), std::size_t{0});
        rows_.push_back({set_.name, "driver: one copy", 2 * bytes,
                         [this, bytes](std::size_t which) { copy(fused_[which].address(), apart_[which].address(), bytes); },
                         nullptr, 1, reference_});
        rows_.push_back({set_.name, "driver: a copy each", 2 * bytes,
                         [this](std::size_t which) {
                             for (std::size_t i = 0; i < set_.counts.size(); ++i)
                                 copy(std::bit_cast<cuda::device_address>(fused_[which].views()[i].data),
                                      std::bit_cast<cuda::device_address>(apart_[which].views()[i].data), 4 * set_.counts[i]);
                         },
                         &fused_.front(), 1, reference_});
    }

    void add_launch(std::string const& name, std::deque<gpu_tensors> const& from, std::deque<gpu_tensors> const& to, double by) {
        std::vector<cuda::fusion_launch*> prepared;
        for (std::size_t i = 0; i < copies; ++i) {
            auto& launch = launches_.emplace_back(kernels_);
            launch.prepare(from[i].views(), to[i].views(), by, stream_, blocks_);
            prepared.push_back(&launch);
        }
        rows_.push_back({set_.name, name, prepared.front()->bytes_moved(),
                         [this, prepared](std::size_t which) { prepared[which]->run(stream_); }, &to.front(), by, reference_});
    }

    kernel_tensors const& set_;
    std::shared_ptr<cuda::fusion_kernels const> kernels_;
    cuda::stream_handle stream_;
    std::uint32_t blocks_;
    std::vector<timed_kernel>& rows_;
    std::size_t reference_;
    std::deque<gpu_tensors> apart_, fused_, narrow_, half_, back_;
    std::deque<cuda::fusion_launch> launches_;
};

double seconds_of(timed_kernel const& what, cuda::device const& on, cuda::stream_handle stream, cuda::event_handle begin,
                  cuda::event_handle end) {
    cuda::driver const& with = on.with();
    cuda::check(with, with.event_record(begin, stream), "cuEventRecord");
    for (int i = 0; i < runs_a_repetition; ++i) what.run(static_cast<std::size_t>(i) % copies);
    cuda::check(with, with.event_record(end, stream), "cuEventRecord");
    cuda::check(with, with.event_synchronize(end), "cuEventSynchronize");
    float milliseconds = 0;
    cuda::check(with, with.event_elapsed(&milliseconds, begin, end), "cuEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3 / runs_a_repetition;
}

/// Runs the rows of one set: once to check and to warm up, then for their times.
void measure(std::vector<timed_kernel>& rows, std::size_t first, cuda::device const& on, cuda::stream_handle stream,
             int repetitions) {
    auto const begin = cuda::make_event(on, true), end = cuda::make_event(on, true);
    auto const time = [&](timed_kernel const& each) {
        return seconds_of(each, on, stream, begin.get().handle, end.get().handle);
    };
    for (std::size_t i = first; i < rows.size(); ++i) {
        if (rows[i].target != nullptr) rows[i].target->clear(stream);
        time(rows[i]);
        std::string const fault = rows[i].target != nullptr ? rows[i].target->fault(stream, rows[i].scale) : "";
        if (!fault.empty())
            throw error(errc::invalid_data,
                        fmt::format("{}, {}: {}; please report this fault in muster", rows[i].set, rows[i].name, fault));
    }
    for (int repetition = 0; repetition < repetitions; ++repetition)
        for (std::size_t i = first; i < rows.size(); ++i)
            rows[i].gbps.push_back(static_cast<double>(rows[i].bytes) / time(rows[i]) / 1e9);
}

void print_table(std::vector<timed_kernel> const& rows, cuda::device const& on) {
    std::vector<std::vector<std::string>> cells{{"tensors", "way", "MiB moved", "GB/s", "low", "high", "of copy"}};
    for (auto const& each : rows) {
        auto const rate = summarise(each.gbps);
        cells.push_back({each.set, each.name, fmt::format("{:.1f}", static_cast<double>(each.bytes) / (1 << 20)),
                         fmt::format("{:.0f}", rate.median), fmt::format("{:.0f}", rate.spread.low),
                         fmt::format("{:.0f}", rate.spread.high),
                         fmt::format("{:.0f}%", 100 * rate.median / median(rows[each.reference].gbps))});
    }
    fmt::print("{} ({})\n{}", on.name(), on.uuid(), align_columns(cells));
}

void print_json(std::vector<timed_kernel> const& rows, cuda::device const& on) {
    nlohmann::json out{
        {"schema", "muster.gpu-kernels/1"}, {"gpu", on.name()}, {"uuid", on.uuid()}, {"rows", nlohmann::json::array()}};
    for (auto const& each : rows)
        out["rows"].push_back({{"tensors", each.set},
                               {"way", each.name},
                               {"bytes", each.bytes},
                               {"gbps", each.gbps},
                               {"of_copy", median(each.gbps) / median(rows[each.reference].gbps)}});
    fmt::print("{}\n", out.dump(2));
}

}  // namespace

constexpr command_row kernels_speed_row{
    .name = "kernels",
    .summary = "packing and converting tensors on a GPU, beside the driver's copies",
    .synopsis = "[options]",
    .examples = "  gpu_speed kernels --device 0\n",
    .options = gpu_kernels_options,
    .description =
        "Measures the kernels that pack tensors into a fused buffer, convert and scale them, beside the driver's own copies on "
        "the\n"
        "same GPU.",
    .closing = R"(
GB/s is 1e9 bytes a second, bytes read and written counted both; the last column is a row's median as a part of that of the
driver's single copy of the same tensors. A repetition runs every row once, in turns: 20 times between two events of the device,
over 4 sets of memory in turns, so that the caches do not hold them. Results are checked on the CPU. Without a GPU, or without
kernels in this build, it prints so and ends with 77.
)",
};

int kernels_speed(given_options const& given, environment const&) {
    int const repetitions = count_of(given, "repetitions");
    auto const blocks = static_cast<std::uint32_t>(count_of(given, "blocks", 0));
    std::array<std::string, 1> const file{given.text("driver")};
    auto const found = file[0].empty() ? cuda::find_driver() : cuda::find_driver(file);
    auto const missing = cuda::kernels_missing();
    if (found.use == nullptr || missing) {
        fmt::print(stderr, "gpu_speed kernels: skipped: {}\n", missing ? *missing : found.why_not);
        return kernels_skipped;
    }
    auto const on = cuda::device::open(found, count_of(given, "device", 0));
    auto const kernels = cuda::fusion_kernels::load(on);
    cuda::device::scope const current(*on);
    auto const stream = cuda::make_stream(*on);
    std::vector<timed_kernel> rows;
    auto const all = sets();
    for (auto const& set : all) {
        std::size_t const first = rows.size();
        set_bench const memory(set, kernels, stream.get().handle, blocks, rows);
        measure(rows, first, *on, stream.get().handle, repetitions);
    }
    given.has("json") ? print_json(rows, *on) : print_table(rows, *on);
    return 0;
}

}  // namespace muster
