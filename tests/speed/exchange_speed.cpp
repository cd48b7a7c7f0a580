#include "tests/speed/exchange_speed.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/units.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/gradient_sets.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "comm/communicator.hpp"
#include "comm/exchange/exchange.hpp"
#include "pmix/identity.hpp"

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
            // Each has its own name, since the exchange keeps the residual of error feedback by name.
            ranks.allreduce(each.name, view_of(std::span(in)), view_of(std::span(out)), reduction::sum, call).wait();
            double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            auto const time = view_of(std::span(&seconds, 1));
            ranks.allreduce("time", time, time, reduction::max).wait();
            check_sum(ranks.size(), out, each);
            if (repetition >= 0) each.seconds.push_back(seconds);
        }
}

}  // namespace

/// Measures each size (bytes of the tensor) and prints a table on rank 0. The rows take turns; a time is the median of `repetitions`
/// calls, each the slowest rank's. Every result is compared with the sum in double. Collective. Throws errc::internal for a wrong one,
/// comm_error.
void measure_wire(exchange& ranks, std::vector<std::uint64_t> const& sizes, int repetitions) {
    if (ranks.rank() == 0)
        fmt::print("{}, backend {}, {}\n{:>9}  {:<16}{:>10} {:>8} {:>7}\n", counted(ranks.size(), "rank"), ranks.backend(),
                   counted(repetitions, "repetition"), "bytes", "wire", "us", "GB/s", "gain");
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

namespace {

using clock = std::chrono::steady_clock;

constexpr option_row exchange_options_table[]{
    {"backend", 0, "NAME", "shm, mpi, …; default: the first that can serve", ""},
    {"repetitions", 0, "N", "repetitions that are counted, after two that are not", "15"},
    {"fusion", 0, "SIZE", "most bytes that one collective reduces for several tensors; default: the exchange's", ""},
    {"cycle", 0, "TIME", "how long a rank gathers tensors before it negotiates them; default: the exchange's", ""},
    {"small", 0, "N", "number of tensors of 256 bytes", "10000"},
    {"wire", 0, "SIZES", "instead: sums of f32 tensors of these sizes, also with f16 and bf16 on the wire: 64KiB,1MiB,64MiB", ""},
    {"json", 0, "", "the results as JSON", ""},
    strict_option,
};

struct exchange_plan {
    exchange_options options;
    int repetitions = 15;
    std::size_t small = 10000;
    std::vector<std::uint64_t> wire{};
    bool json = false;
};

exchange_plan read_exchange_plan(given_options const& given, environment const& variables) {
    exchange_plan asked;
    asked.options = read_exchange_options(variables);
    asked.options.deadline = duration{120};
    if (given.has("backend")) asked.options.comm.backend = given.text("backend");
    asked.repetitions = count_of(given, "repetitions");
    if (given.has("fusion")) asked.options.fusion_bytes = parse_bytes(given.text("fusion"), "--fusion");
    if (given.has("cycle")) asked.options.cycle_time = parse_duration(given.text("cycle"), "--cycle");
    asked.small = static_cast<std::size_t>(count_of(given, "small"));
    if (given.has("wire")) {
        auto const list = given.text("wire");
        for (auto const& word : split(list, ','))
            asked.wire.push_back(std::max<std::uint64_t>(parse_bytes(word, "--wire"), sizeof(float)));
    }
    asked.json = given.has("json");
    if (asked.json && !asked.wire.empty()) throw error(errc::usage, "--json is not of --wire; leave one of them out");
    return asked;
}

/// MPI for the peer, from this thread, while the exchange's thread may use MPI too.
class mpi_peer {
  public:
    mpi_peer() {
        int provided = MPI_THREAD_SINGLE;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
        if (provided < MPI_THREAD_MULTIPLE)
            throw error(errc::unavailable,
                        "this MPI has no MPI_THREAD_MULTIPLE, which the peer needs next to the exchange; use an MPI that has it");
    }
    ~mpi_peer() { MPI_Finalize(); }
    mpi_peer(mpi_peer const&) = delete;
    mpi_peer& operator=(mpi_peer const&) = delete;

    static void sum(float* values, std::size_t count) {
        MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    static double sum(double mine) {
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return all;
    }
    static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
    static double longest(double mine) {
        double all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return all;
    }
};

/// Tensors of so many elements, apart from each other or gap-free in one piece of memory.
struct tensor_set {
    std::vector<std::vector<float>> memory;
    std::vector<std::span<float>> tensors;
    std::vector<std::string> names;

    comm_buffer shared{};  // instead of `memory`

    /// Gap-free in the exchange's own memory.
    tensor_set(std::string const& prefix, std::vector<std::size_t> const& elements, exchange& all) {
        std::size_t total = 0, at = 0;
        for (std::size_t const count : elements) total += count;
        shared = all.allocate(total * sizeof(float));
        for (std::size_t const count : elements) {
            tensors.push_back(shared.as<float>().subspan(at, count));
            names.push_back(prefix + std::to_string(names.size()));
            at += count;
        }
    }
    tensor_set(std::string const& prefix, std::vector<std::size_t> const& elements, bool gap_free) {
        std::size_t total = 0;
        for (std::size_t const count : elements) total += count;
        if (gap_free) memory.emplace_back(total);
        std::size_t at = 0;
        for (std::size_t const count : elements) {
            if (!gap_free) memory.emplace_back(count);
            tensors.push_back(gap_free ? std::span(memory.front()).subspan(at, count) : std::span(memory.back()));
            names.push_back(prefix + std::to_string(names.size()));
            at += count;
        }
    }
    void fill(float value) {
        for (auto& each : memory) std::fill(each.begin(), each.end(), value);
        if (shared) std::fill_n(shared.as<float>().begin(), bytes() / sizeof(float), value);
    }
    bool holds(float value) const {
        for (auto const& each : tensors)
            for (std::size_t i = 0; i < each.size(); i += std::max<std::size_t>(1, each.size() / 7))
                if (each[i] != value) return false;
        return true;
    }
    std::size_t bytes() const {
        std::size_t sum = 0;
        for (auto const& each : tensors) sum += each.size_bytes();
        return sum;
    }
};

struct timed_exchange {
    std::string name;
    tensor_set* set;
    std::function<void()> run;
    bool keeps = false;  ///< the result is what was filled in
    int times = 1;       ///< a repetition runs it so often, one after the other; sums then grow by the ranks each time
    std::vector<double> us{};
};

void submit_all(exchange& all, tensor_set& set, reduction how = reduction::sum) {
    std::vector<exchange_handle> handles;
    handles.reserve(set.tensors.size());
    for (std::size_t i = set.tensors.size(); i-- > 0;) {  // as a backward pass does, the last first
        auto const view = view_of(set.tensors[i]);
        handles.push_back(all.allreduce(set.names[i], view, view, how));
    }
    for (auto const& each : handles) each.wait();
}

std::vector<named_tensor> group_of(tensor_set& set) {
    std::vector<named_tensor> group;
    group.reserve(set.tensors.size());
    for (std::size_t i = 0; i < set.tensors.size(); ++i)
        group.push_back({set.names[i], view_of(set.tensors[i]), view_of(set.tensors[i])});
    return group;
}

void submit_group(exchange& all, tensor_set& set) {
    all.allreduce_group(set.names.front() + " and all", group_of(set), reduction::sum).wait();
}

void one_call_each(tensor_set& set) {
    for (auto& each : set.tensors) mpi_peer::sum(each.data(), each.size());
}

void concatenated(tensor_set& set, std::vector<float>& buffer) {
    float* to = buffer.data();
    for (auto const& each : set.tensors) to = std::copy(each.begin(), each.end(), to);
    mpi_peer::sum(buffer.data(), static_cast<std::size_t>(to - buffer.data()));
    float const* from = buffer.data();
    for (auto& each : set.tensors) {
        std::copy_n(from, each.size(), each.data());
        from += each.size();
    }
}

int measure(exchange& all, std::vector<timed_exchange>& rows, int repetitions) {
    auto const expected = static_cast<float>(all.size());
    int wrong = 0;
    for (int repetition = -2; repetition < repetitions; ++repetition) {
        for (auto& each : rows) {
            each.set->fill(1.0f);
            mpi_peer::barrier();
            auto const begin = clock::now();
            for (int time = 0; time < each.times; ++time) each.run();
            double const us = std::chrono::duration<double, std::micro>(clock::now() - begin).count() / each.times;
            if (!each.set->holds(each.keeps ? 1.0f : std::pow(expected, static_cast<float>(each.times)))) ++wrong;
            double const longest = mpi_peer::longest(us);
            if (repetition >= 0) each.us.push_back(longest);
        }
    }
    return wrong;
}

void print(exchange const& all, exchange_plan const& asked, std::vector<timed_exchange> const& rows, double round_us,
           counter_values const& count, int wrong, machine_load const& load) {
    if (asked.json) {
        nlohmann::json out{{"schema", "muster.exchange/1"},
                           {"created", utc_now()},
                           {"context", nlohmann::json(machine_json(describe_machine()))},
                           {"ranks", all.size()},
                           {"backend", all.backend()},
                           {"wrong", wrong},
                           {"fusion_bytes", asked.options.fusion_bytes},
                           {"cycle_time_s", asked.options.cycle_time.count()},
                           {"round_us", round_us},
                           {"load", to_json(load)},
                           {"counters", parse_json_as<nlohmann::json>(to_json(count, 0), "the counters")},
                           {"rows", nlohmann::json::array()}};
        for (auto const& each : rows) out["rows"].push_back({{"name", each.name}, {"bytes", each.set->bytes()}, {"us", each.us}});
        fmt::print("{}\n", out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
        return;
    }
    if (all.size() == 1)
        fmt::print(stderr, "note: one rank alone reduces nothing; write: muster run -n 2 -- cpu_speed exchange\n");
    fmt::print("{}, backend {}, fusion {}, cycle {}, {}\n\n{:52}{:>12}{:>12}{:>12}\n", counted(all.size(), "rank"), all.backend(),
               format_bytes(asked.options.fusion_bytes), format_duration(asked.options.cycle_time),
               counted(asked.repetitions, "repetition"), "", "median us", "smallest", "largest");
    for (auto const& each : rows) {
        auto const s = summarise(each.us);
        fmt::print("{:52}{:12.1f}{:12.1f}{:12.1f}\n", each.name, s.median, s.smallest, s.largest);
    }
    fmt::print(
        "\nfused {:.3f} of all tensors; {} rounds, {} of them full; a round that agreed on something took {:.1f} us on average "
        "(waiting for the other "
        "ranks included)\n{} wrong\n",
        fused_ratio(count), count.rounds, count.full_rounds, round_us, wrong);
    fmt::print("{}", busy_line(load));
}

}  // namespace

constexpr command_row exchange_speed_row{
    .name = "exchange",
    .summary = "negotiation and fusion, compared with one call per tensor",
    .synopsis = "[options]",
    .examples =
        "  muster run -n 2 -- cpu_speed exchange\n"
        "  muster run -n 2 -- cpu_speed exchange --wire 1MiB,64MiB\n",
    .options = exchange_options_table,
    .description =
        "Compares the exchange (named tensors, negotiated and fused) with one MPI_Allreduce per tensor and with its backend "
        "alone.\n"
        "Start it on several ranks.",
    .closing = R"(
Rows:
  exchange           every tensor is submitted under its own name, the last first; then all are waited for
  as a group         one call submits all tensors under one name
  prepared           the ranks have checked the group once before; a repetition only starts it
  gap-free           the tensors lie one after the other in one piece of memory, so that fusion copies nothing
  allocated          gap-free, in memory from exchange::allocate(), which the ranks of a node share
  with the copies    the tensors are copied into one buffer, reduced by one call, and copied back
  its backend        the exchange's backend reduces without the exchange
A repetition runs every row once, in turns (tensors of 4 B 50 times, those of 256 B five times in a row, as the steps of a
training do); its time is that of the slowest rank. The table has the median, the smallest and the largest repetition.
A cycle is how long a rank gathers tensors before it negotiates them; full rounds had requests that were not in the cache.
All sums are checked.
With --wire a call is one submission and its wait(): a round of negotiation (the request is in the cache), rounding, the allreduce,
widening. GB/s is algorithm bandwidth: bytes of f32 reduced a second. gain is the time of f32 divided by the row's.
)",
};

int exchange_speed(given_options const& given, environment const& variables) {
    exchange_plan const asked = read_exchange_plan(given, variables);
    identity const who = identify(variables);
    crowd_watch const crowd;  // before MPI starts, whose ranks poll while they wait
    if (who.local_rank == 0) refuse_crowd(given, crowd.load(false));
    if (!asked.wire.empty()) {
        exchange all(who, asked.options);
        measure_wire(all, asked.wire, asked.repetitions);
        return 0;
    }
    mpi_peer const mpi;
    communicator bare = communicator::create(who, asked.options.comm);
    int wrong = 0;
    {
        exchange all(who, asked.options);
        auto const sizes = gradients_of("resnet50").elements;
        tensor_set tiny("tiny.", std::vector<std::size_t>(161, 1), false), one("one.", {1}, false), apart("layer.", sizes, false),
            flat("flat.", sizes, true), shared("shared.", sizes, all),
            small("small.", std::vector<std::size_t>(asked.small, 64), false), large("large.", {std::size_t{16} << 20}, true),
            small_flat("small flat.", std::vector<std::size_t>(asked.small, 64), true),
            small_shared("small shared.", std::vector<std::size_t>(asked.small, 64), all);
        auto prepared = all.prepare("prepared", group_of(small), reduction::sum);
        auto prepared_flat = all.prepare("prepared flat", group_of(small_flat), reduction::sum);
        auto prepared_shared = all.prepare("prepared shared", group_of(small_shared), reduction::sum);
        constexpr int steps = 5;  // of small tensors in a row: exact sums, also of 128 ranks
        std::vector<float> buffer(flat.bytes() / sizeof(float));
        auto const large_view = view_of(large.tensors.front()), one_view = view_of(one.tensors.front());
        std::vector<timed_exchange> rows{
            {"161 tensors of 4 B: exchange", &tiny, [&] { submit_all(all, tiny, reduction::average); }, true, 50},
            {"1 tensor of 4 B: exchange", &one, [&] { all.allreduce("one", one_view, one_view, reduction::average).wait(); },
             true, 50},
            {"ResNet-50, 161 gradients: exchange", &apart, [&] { submit_all(all, apart); }},
            {"ResNet-50, gap-free: exchange", &flat, [&] { submit_all(all, flat); }},
            {"ResNet-50, gap-free, allocated: exchange", &shared, [&] { submit_all(all, shared); }},
            {"ResNet-50: one MPI_Allreduce a tensor", &apart, [&] { one_call_each(apart); }},
            {"ResNet-50, allocated: one MPI_Allreduce a tensor", &shared, [&] { one_call_each(shared); }},
            {"ResNet-50: one MPI_Allreduce, with the copies", &apart, [&] { concatenated(apart, buffer); }},
            {fmt::format("{} tensors of 256 B: exchange", asked.small), &small, [&] { submit_all(all, small); }, false, steps},
            {fmt::format("{} tensors of 256 B: exchange, as a group", asked.small), &small, [&] { submit_group(all, small); },
             false, steps},
            {fmt::format("{} tensors of 256 B: prepared", asked.small), &small, [&] { prepared.start().wait(); }, false, steps},
            {fmt::format("{} tensors of 256 B: prepared, gap-free", asked.small), &small_flat,
             [&] { prepared_flat.start().wait(); }, false, steps},
            {fmt::format("{} tensors of 256 B: prepared, allocated", asked.small), &small_shared,
             [&] { prepared_shared.start().wait(); }, false, steps},
            {fmt::format("{} tensors of 256 B: one MPI_Allreduce each", asked.small), &small, [&] { one_call_each(small); },
             false, steps},
            {fmt::format("{} tensors of 256 B: one exchange call each", asked.small), &small,
             [&] {
                 for (std::size_t i = 0; i < small.tensors.size(); ++i) {
                     auto const view = view_of(small.tensors[i]);
                     all.allreduce(small.names[i], view, view, reduction::sum).wait();
                 }
             }},
            {"64 MiB: exchange", &large, [&] { all.allreduce("large", large_view, large_view, reduction::sum).wait(); }},
            {"64 MiB: its backend", &large, [&] { bare.allreduce("large", large_view, reduction::sum).wait(); }},
        };
        wrong = measure(all, rows, asked.repetitions);
        auto const count = all.count();
        double const round_us = count.agreeing_rounds == 0
                                    ? 0.0
                                    : static_cast<double>(count.agreeing_ns) / 1e3 / static_cast<double>(count.agreeing_rounds);
        double const measured_s = mpi_peer::sum(crowd.own_s());
        auto const load = who.node_count == 1 ? crowd.load_of(measured_s) : crowd.load(false);
        if (all.rank() == 0) print(all, asked, rows, round_us, count, wrong, load);
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace muster
