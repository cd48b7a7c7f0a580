#include "bench/collectives/collectives_rank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>

#include "base/error.hpp"
#include "base/version.hpp"
#include "bench/collectives/collectives_memory.hpp"
#include "bench/collectives/collectives_values.hpp"
#include "bench/collectives/raw_nccl.hpp"
#include "comm/communicator.hpp"

namespace muster {

namespace {

using clock = std::chrono::steady_clock;
using kind = collective::kind;

constexpr int stale = 0xa5;  ///< in every byte of what is to be written

double micros_since(clock::time_point begin) {
    return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

/// One way to the other ranks: a backend, or NCCL alone.
struct way {
    int rank = 0;
    int ranks = 1;
    std::string version;
    std::function<void(collective_case const&, tensor_view, tensor_view)> run;
    std::function<void()> barrier;
    cuda::device const* gpu = nullptr;
    std::function<comm_buffer(std::size_t)> allocate{};  ///< where the tensors are to lie, if not in plain memory
};

/// One tensor: where it comes from and goes to. In place both are in `in` or both in `out`.
struct measured_tensor {
    collectives_memory in, out;
    tensor_view from, to;
};

class measured_rank {
  public:
    measured_rank(way const& by, std::ofstream& answer) : by_(by), answer_(answer) {}

    void choose(std::istringstream& words) {
        std::string what, type, how;
        int product = 0;
        words >> what >> type >> how >> of_.root >> rule_.mask >> rule_.scale >> rule_.active >> product;
        rule_.product = product != 0;
        of_.what = parse_kinds(what).front();
        of_.type = parse_types(type).front();
        of_.how = how == "none" ? reduction::sum : parse_reductions(how).front();
        answer(0, 0);
    }

    void make(std::istringstream& words) {
        tensors_.clear();
        std::size_t count = 0;
        words >> sets_ >> count;
        std::vector<std::size_t> bytes(count);
        for (auto& each : bytes) words >> each;
        auto const in_bytes = [&](std::size_t each) { return of_.what == kind::allgather ? part_of(each) : each; };
        auto const out_bytes = [&](std::size_t each) { return of_.what == kind::reducescatter ? part_of(each) : each; };
        pool_ = {};
        pool_used_ = 0;
        if (by_.allocate) {
            std::size_t all = 0;
            for (auto const each : bytes) all += in_lines(in_bytes(each)) + in_lines(out_bytes(each));
            pool_ = by_.allocate(all * sets_);
        }
        for (std::size_t set = 0; set < sets_; ++set)
            for (auto const each : bytes) tensors_.push_back({memory_of(in_bytes(each)), memory_of(out_bytes(each)), {}, {}});
        answer(0, 0);
    }

    void run(unsigned seed, bool in_place) {
        for (std::size_t k = 0; k < tensors_.size(); ++k) fill(tensors_[k], {static_cast<unsigned>(k), seed}, in_place);
        by_.barrier();
        auto const begin = clock::now();
        for (auto const& each : tensors_) by_.run(of_, each.from, each.to);
        double const micros = micros_since(begin) / static_cast<double>(sets_);
        std::size_t wrong = 0;
        for (std::size_t k = 0; k < tensors_.size(); ++k) wrong += check(tensors_[k], {static_cast<unsigned>(k), seed}, in_place);
        answer(micros, static_cast<double>(wrong));
    }

    /// Times copies in host memory on all ranks at once, and answers the best of a few.
    void bound(std::size_t bytes) {
        std::size_t const count = bytes / sizeof(double);
        aligned_vector<double> a(count, 1.0), b(count, 2.0), c(count, 3.0);
        double copied = std::numeric_limits<double>::max(), triad = copied;
        for (int i = 0; i < 5; ++i) {
            by_.barrier();
            auto begin = clock::now();
            std::memcpy(a.data(), b.data(), count * sizeof(double));
            copied = std::min(copied, micros_since(begin));
            by_.barrier();
            begin = clock::now();
            for (std::size_t k = 0; k < count; ++k) a[k] = b[k] + 3.0 * c[k];
            triad = std::min(triad, micros_since(begin));
        }
        by_.barrier();
        answer(copied, triad);
    }

    void answer(double first, double second) {
        answer_ << fmt::format("{} {:.4f} {:.4f}\n", by_.rank, first, second) << std::flush;
    }

  private:
    /// This rank's part of a tensor of so many bytes.
    std::size_t part_of(std::size_t bytes) const { return bytes / static_cast<std::size_t>(by_.ranks); }
    std::size_t elements(std::size_t bytes) const { return bytes / size_of(of_.type); }

    /// Allocated memory comes in few large pieces: one for all tensors here.
    collectives_memory memory_of(std::size_t bytes) {
        if (!by_.allocate) return {bytes, by_.gpu};
        std::byte* const at = pool_.data() + pool_used_;
        pool_used_ += in_lines(bytes);
        return {at, bytes};
    }
    static std::size_t in_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

    void fill(measured_tensor& each, sample_place at, bool in_place) {
        std::size_t const whole = std::max(each.in.bytes(), each.out.bytes()), part = part_of(whole);
        std::size_t const own = part * static_cast<std::size_t>(by_.rank);
        bool const in_output = in_place && of_.what != kind::reducescatter;
        auto& memory = in_output ? each.out : each.in;
        std::size_t const offset = in_output && of_.what == kind::allgather ? own : 0;
        std::size_t const count = elements(of_.what == kind::allgather ? part : whole);
        if (!in_output) each.out.write([&](std::byte* to) { std::memset(to, stale, each.out.bytes()); });
        memory.write([&](std::byte* to) {
            if (offset != 0 || count != elements(memory.bytes())) std::memset(to, stale, memory.bytes());
            fill_values(rule_, of_.type, to + offset, count, 0, at, by_.rank);
        });
        each.from = memory.view(offset, count, of_.type);
        each.to = in_place && of_.what == kind::reducescatter ? each.in.view(own, elements(part), of_.type)
                                                              : each.out.view(0, elements(each.out.bytes()), of_.type);
    }

    std::size_t check(measured_tensor const& each, sample_place at, bool in_place) const {
        std::size_t const whole = std::max(each.in.bytes(), each.out.bytes()), part = part_of(whole);
        std::size_t const own = part * static_cast<std::size_t>(by_.rank);
        bool const in_input = in_place && of_.what == kind::reducescatter;
        return (in_input ? each.in : each.out).read([&](std::byte const* got) -> std::size_t {
            switch (of_.what) {
                case kind::allreduce:
                    return count_wrong_reduced(rule_, of_.type, of_.how, got, elements(whole), 0, at, by_.ranks);
                case kind::reducescatter:
                    return count_wrong_reduced(rule_, of_.type, of_.how, in_input ? got + own : got, elements(part),
                                               elements(own), at, by_.ranks);
                case kind::broadcast: return count_wrong(rule_, of_.type, got, elements(whole), 0, at, of_.root);
                default: break;
            }
            std::size_t wrong = 0;
            for (int rank = 0; rank < by_.ranks; ++rank)  // a part of each rank; alltoall: the one that was for this rank
                wrong += count_wrong(rule_, of_.type, got + part * static_cast<std::size_t>(rank), elements(part),
                                     of_.what == kind::alltoall ? elements(own) : 0, at, rank);
            return wrong;
        });
    }

    way const& by_;
    std::ofstream& answer_;
    collective_case of_;
    value_rule rule_;
    std::size_t sets_ = 0;
    comm_buffer pool_;
    std::size_t pool_used_ = 0;
    std::vector<measured_tensor> tensors_;
};

void run_ours(communicator& all, std::vector<std::size_t>& counts, collective_case const& of, tensor_view in, tensor_view out) {
    switch (of.what) {
        case kind::allreduce: all.allreduce("x", in, out, of.how).wait(); return;
        case kind::reducescatter: all.reducescatter("x", in, out, of.how).wait(); return;
        case kind::broadcast: all.broadcast("x", out, of.root).wait(); return;
        case kind::allgather: all.allgather("x", in, out).wait(); return;
        default: break;
    }
    std::fill(counts.begin(), counts.end(), in.count / counts.size());
    all.alltoall("x", in, counts, out, counts).wait();
}

/// Changes an identity on one node to one on several nodes with equal numbers of ranks.
void pretend(identity& who, int nodes) {
    int const each = (who.world_size + nodes - 1) / nodes;
    who.node_count = (who.world_size + each - 1) / each;
    who.node_rank = who.rank / each;
    who.local_rank = who.rank % each;
    who.local_size = each;
}

void follow_orders(std::string const& folder, std::string const& name, way const& by) {
    std::ifstream orders(fmt::format("{}/{}.{}", folder, name, by.rank));
    std::ofstream answer(fmt::format("{}/{}.out", folder, name));
    measured_rank measured(by, answer);
    for (std::string line; std::getline(orders, line);) {
        std::istringstream words(line);
        std::string order;
        words >> order;
        if (order == "end") break;
        if (order == "version" && by.rank == 0) answer << "0 " << by.version << std::endl;
        if (order == "kind") measured.choose(words);
        if (order == "tensors") measured.make(words);
        if (order == "run") {
            unsigned seed = 0;
            int in_place = 0;
            words >> seed >> in_place;
            measured.run(seed, in_place != 0);
        }
        if (order == "bound") {
            std::size_t bytes = 0;
            words >> bytes;
            measured.bound(bytes);
        }
    }
}

}  // namespace

constexpr command_row collectives_rank_row{.name = "collectives-rank", .hidden = true};

int collectives_rank(std::vector<std::string> const& args, environment const& variables) {
    if (args.size() != 5) throw error(errc::usage, "collectives-rank: not to be started by hand; give muster-bench collectives");
    identity who = identify(variables);
    std::string const& backend = args[2];
    way by{who.rank, who.world_size, "", {}, {}, nullptr, {}};
    std::shared_ptr<cuda::device const> gpu;
    constexpr duration deadline{120};
    if (backend == "nccl" || backend == "raw-nccl") gpu = gpu_of(who);
    by.gpu = gpu.get();
    if (backend == "raw-nccl") {
        raw_nccl all(who, gpu, deadline);
        by.version = all.version();
        by.run = [&](auto const& of, auto in, auto out) { all.run(of, in, out); };
        by.barrier = [&] { all.barrier(); };
        follow_orders(args[0], args[1], by);
        return 0;
    }
    int const nodes = std::stoi(args[3]);
    if (nodes > 1) pretend(who, nodes);
    comm_options options;
    options.backend = backend;
    options.deadline = deadline;
    options.memory = gpu ? memory_kind::device : memory_kind::host;
    if (gpu) options.device = gpu->ordinal();
    communicator all = communicator::create(who, options);
    std::vector<std::size_t> counts(static_cast<std::size_t>(who.world_size));
    by.version = fmt::format("muster {}, {}", version(), all.backend());
    if (gpu) by.version += fmt::format(" on {}", gpu->name());
    if (nodes > 1) by.version += fmt::format(", one node pretending to be {}", who.node_count);
    by.run = [&](auto const& of, auto in, auto out) { run_ours(all, counts, of, in, out); };
    by.barrier = [&] { all.barrier().wait(); };
    if (args[4] == to_string(memory_of_tensors::allocated)) by.allocate = [&](std::size_t bytes) { return all.allocate(bytes); };
    follow_orders(args[0], args[1], by);
    return 0;
}

}  // namespace muster
