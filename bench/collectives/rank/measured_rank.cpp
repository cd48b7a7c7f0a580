#include "bench/collectives/rank/measured_rank.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/tools/statistics.hpp"

namespace muster {

namespace {

using kind = collective::kind;

constexpr int stale = 0xa5;  ///< in every byte of what is to be written

std::size_t in_lines(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

void run_over(communicator& all, std::vector<std::size_t>& counts, collective_case const& of, tensor_view in, tensor_view out) {
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

}  // namespace

way_to_ranks way_over(communicator& all) {
    way_to_ranks by;
    by.rank = all.rank();
    by.ranks = all.size();
    by.run = [&all, counts = std::vector<std::size_t>(static_cast<std::size_t>(all.size()))](
                 collective_case const& of, tensor_view in, tensor_view out) mutable { run_over(all, counts, of, in, out); };
    by.barrier = [&all] { all.barrier().wait(); };
    return by;
}

void measured_rank::choose(collective_case const& of, value_rule const& rule) {
    of_ = of;
    rule_ = rule;
}

void measured_rank::make(std::size_t sets, std::span<std::size_t const> bytes) {
    sets_ = sets;
    tensors_.clear();
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
}

measured_rank::outcome measured_rank::run(unsigned seed, bool in_place) {
    for (std::size_t k = 0; k < tensors_.size(); ++k) fill(tensors_[k], {static_cast<unsigned>(k), seed}, in_place);
    by_.barrier();
    auto const begin = std::chrono::steady_clock::now();
    for (auto const& each : tensors_) by_.run(of_, each.from, each.to);
    outcome found{micros_since(begin) / static_cast<double>(sets_), 0};
    for (std::size_t k = 0; k < tensors_.size(); ++k)
        found.wrong += check(tensors_[k], {static_cast<unsigned>(k), seed}, in_place);
    return found;
}

/// Allocated memory comes in few large pieces: one for all tensors here.
collectives_memory measured_rank::memory_of(std::size_t bytes) {
    if (!by_.allocate) return {bytes, by_.gpu};
    std::byte* const at = pool_.data() + pool_used_;
    pool_used_ += in_lines(bytes);
    return {at, bytes};
}

void measured_rank::fill(measured_tensor& each, sample_place at, bool in_place) {
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

std::size_t measured_rank::check(measured_tensor const& each, sample_place at, bool in_place) const {
    std::size_t const whole = std::max(each.in.bytes(), each.out.bytes()), part = part_of(whole);
    std::size_t const own = part * static_cast<std::size_t>(by_.rank);
    bool const in_input = in_place && of_.what == kind::reducescatter;
    return (in_input ? each.in : each.out).read([&](std::byte const* got) -> std::size_t {
        switch (of_.what) {
            case kind::allreduce: return count_wrong_reduced(rule_, of_.type, of_.how, got, elements(whole), 0, at, by_.ranks);
            case kind::reducescatter:
                return count_wrong_reduced(rule_, of_.type, of_.how, in_input ? got + own : got, elements(part), elements(own),
                                           at, by_.ranks);
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

}  // namespace muster
