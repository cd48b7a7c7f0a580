#include "bench/exchange/wire_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.hpp"
#include "base/units.hpp"
#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

struct timed_wire {
    std::string name;
    compression wire = compression::none;
    bool feedback = false;
    std::vector<double> seconds{};
};

float value(std::size_t i, int rank) {
    return 1.0f + static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 17) % 251) / 256.0f;
}

void check_sum(int ranks, std::vector<float> const& sum, timed_wire const& of) {
    for (std::size_t i = 0; i < sum.size(); i += 97) {
        double exact = 0;
        for (int rank = 0; rank < ranks; ++rank) exact += static_cast<double>(value(i, rank));
        // Two roundings of half a unit in the last place; feedback adds those of the step before.
        double const rounding = of.wire == compression::none ? 1e-6 : of.wire == compression::f16 ? 0x1p-10 : 0x1p-7;
        double const tolerance = 1.01 * exact * rounding * (of.feedback ? 2 : 1);
        if (std::abs(static_cast<double>(sum[i]) - exact) > tolerance)
            throw error(errc::internal,
                        fmt::format("wrong sum in {}: element {} of {} is {}, not {}", of.name, i, sum.size(), sum[i], exact));
    }
}

void measure_size(exchange& ranks, std::size_t bytes, int repetitions, std::vector<timed_wire>& rows) {
    std::vector<float> in(bytes / sizeof(float)), out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(i, ranks.rank());
    for (int repetition = -1; repetition < repetitions; ++repetition)  // the first is not counted
        for (auto& each : rows) {
            exchange_call call;
            call.wire = each.wire;
            call.error_feedback = each.feedback;
            std::fill(out.begin(), out.end(), 0.0f);
            ranks.barrier().wait();
            auto const begin = std::chrono::steady_clock::now();
            // By its own name, since the residual of error feedback is kept by name.
            ranks.allreduce(each.name, view_of(std::span(in)), view_of(std::span(out)), reduction::sum, call).wait();
            double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            auto const time = view_of(std::span(&seconds, 1));
            ranks.allreduce("time", time, time, reduction::max).wait();
            check_sum(ranks.size(), out, each);
            if (repetition >= 0) each.seconds.push_back(seconds);
        }
}

}  // namespace

void measure_wire(exchange& ranks, std::vector<std::uint64_t> const& sizes, int repetitions) {
    if (ranks.rank() == 0)
        fmt::print("{} ranks, backend {}, {} repetitions\n{:>9}  {:<16}{:>10} {:>8} {:>7}\n", ranks.size(), ranks.backend(),
                   repetitions, "bytes", "wire", "us", "GB/s", "gain");
    for (auto const bytes : sizes) {
        std::vector<timed_wire> rows{
            {"f32"}, {"bf16", compression::bf16}, {"f16", compression::f16}, {"bf16, feedback", compression::bf16, true}};
        measure_size(ranks, bytes, repetitions, rows);
        if (ranks.rank() != 0) continue;
        for (auto const& each : rows) {
            double const seconds = median(each.seconds);
            fmt::print("{:>9}  {:<16}{:>10.1f} {:>8.3f} {:>7.2f}\n", format_bytes(bytes), each.name, seconds * 1e6,
                       static_cast<double>(bytes) / seconds / 1e9, median(rows.front().seconds) / seconds);
        }
        std::fflush(stdout);
    }
}

}  // namespace muster
