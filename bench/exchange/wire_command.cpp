#include "bench/exchange/wire_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <chrono>
#include <cmath>
#include <memory>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "comm/gradients/compressed_allreduce.hpp"
#include "comm/run_with_ranks.hpp"

namespace muster {

namespace {

namespace po = boost::program_options;
using clock = std::chrono::steady_clock;

constexpr std::string_view help_text = R"(muster-bench wire [options], started on several ranks

Measures allreduces (sum) of f32 tensors as they are and with f16 or bf16 on the wire, taking turns: median time of a call, the slowest rank's.

  mpirun -H a:1,b:1 --mca btl tcp,self muster-bench wire

  --sizes LIST       bytes of the tensor; default 64KiB,1MiB,16MiB,64MiB
  --repetitions N    default 15
  --backend NAME     default the first that serves
  -h, --help         this text

Every result is compared with the sum in double: a wrong one ends the measurement. GB/s is algorithm bandwidth: bytes of f32 reduced a second.
)";

struct row {
    std::string name;
    compression wire = compression::none;
    bool feedback = false;
    std::vector<double> seconds{};
};

float value(std::size_t i, int rank) {
    return 1.0f + static_cast<float>((i * 31 + static_cast<std::size_t>(rank) * 17) % 251) / 256.0f;
}

void check(communicator& ranks, std::vector<float> const& sum, row const& of) {
    for (std::size_t i = 0; i < sum.size(); i += 97) {
        double exact = 0;
        for (int rank = 0; rank < ranks.size(); ++rank) exact += static_cast<double>(value(i, rank));
        // Two roundings of half a unit in the last place; feedback brings those of the step before.
        double const rounding = of.wire == compression::none ? 1e-6 : of.wire == compression::f16 ? 0x1p-10 : 0x1p-7;
        double const tolerance = 1.01 * exact * rounding * (of.feedback ? 2 : 1);
        if (std::abs(static_cast<double>(sum[i]) - exact) > tolerance)
            throw error(errc::internal,
                        fmt::format("wrong sum in {}: element {} of {} is {}, not {}", of.name, i, sum.size(), sum[i], exact));
    }
}

void measure(communicator& ranks, std::size_t bytes, int repetitions, std::vector<row>& rows) {
    std::vector<float> in(bytes / sizeof(float)), out(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(i, ranks.rank());
    std::vector<std::unique_ptr<compressed_allreduce>> reducers;
    for (auto const& each : rows) reducers.push_back(std::make_unique<compressed_allreduce>(ranks, each.wire, each.feedback));
    for (int repetition = -1; repetition < repetitions; ++repetition)  // the first warms up
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::fill(out.begin(), out.end(), 0.0f);
            ranks.barrier().wait();
            auto const begin = clock::now();
            reducers[i]->run("wire", view_of(std::span(in)), view_of(std::span(out)), reduction::sum);
            double seconds = std::chrono::duration<double>(clock::now() - begin).count();
            ranks.allreduce("time", view_of(std::span(&seconds, 1)), reduction::max).wait();
            check(ranks, out, rows[i]);
            if (repetition >= 0) rows[i].seconds.push_back(seconds);
        }
}

int measure_all(communicator& ranks, std::vector<std::uint64_t> const& sizes, int repetitions) {
    if (ranks.rank() == 0)
        fmt::print("{} ranks, backend {}, {} repetitions\n{:>9}  {:<16}{:>10} {:>8} {:>7}\n", ranks.size(), ranks.backend(),
                   repetitions, "bytes", "wire", "us", "GB/s", "gain");
    for (auto const bytes : sizes) {
        std::vector<row> rows{
            {"f32"}, {"bf16", compression::bf16}, {"f16", compression::f16}, {"bf16, feedback", compression::bf16, true}};
        measure(ranks, bytes, repetitions, rows);
        if (ranks.rank() != 0) continue;
        for (auto const& each : rows) {
            double const seconds = median(each.seconds);
            fmt::print("{:>9}  {:<16}{:>10.1f} {:>8.3f} {:>7.2f}\n", format_bytes(bytes), each.name, seconds * 1e6,
                       static_cast<double>(bytes) / seconds / 1e9, median(rows.front().seconds) / seconds);
        }
        std::fflush(stdout);
    }
    return 0;
}

}  // namespace

int wire_command(std::vector<std::string> const& args, environment const& variables) {
    po::options_description known;
    known.add_options()("help,h", "")("sizes", po::value<std::string>()->default_value("64KiB,1MiB,16MiB,64MiB"), "")(
        "repetitions", po::value<int>()->default_value(15), "")("backend", po::value<std::string>()->default_value(""), "");
    auto const values = read_options(args, known);
    if (values.count("help") != 0) {
        fmt::print("{}", help_text);
        return 0;
    }
    std::vector<std::uint64_t> sizes;
    for (auto const& word : split(values["sizes"].as<std::string>(), ','))
        sizes.push_back(std::max<std::uint64_t>(parse_bytes(word, "--sizes"), sizeof(float)));
    int const repetitions = values["repetitions"].as<int>();
    if (repetitions < 1) throw error(errc::usage, fmt::format("--repetitions {} measures nothing; give 1 or more", repetitions));
    comm_options options;
    options.backend = values["backend"].as<std::string>();
    options.deadline = duration{120.0};
    return with_ranks("muster-bench wire", identify(variables), options,
                      [&](communicator& ranks) { return measure_all(ranks, sizes, repetitions); });
}

}  // namespace muster
