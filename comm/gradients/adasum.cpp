#include "comm/gradients/adasum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/keep_forever.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

namespace {

/// The three products of a layer, in f64: a.b, a.a, b.b.
using products = std::array<double, 3>;

/// Independent sums need not wait for each other's additions, several of which can run at a time.
constexpr std::size_t lanes = 8;

template <typename T>
products multiply_out(T const* a, T const* b, std::size_t count) noexcept {
    std::array<double, lanes> ab{}, aa{}, bb{};
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            auto const x = static_cast<double>(a[i + lane]), y = static_cast<double>(b[i + lane]);
            ab[lane] += x * y;
            aa[lane] += x * x;
            bb[lane] += y * y;
        }
    products sum{};
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        sum[0] += ab[lane];
        sum[1] += aa[lane];
        sum[2] += bb[lane];
    }
    for (; i < count; ++i) {
        auto const x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
        sum[0] += x * y;
        sum[1] += x * x;
        sum[2] += y * y;
    }
    return sum;
}

/// Computes the Adasum of one vector on every rank, in place. T is float or double.
template <typename T>
class reduction_run {
  public:
    reduction_run(communicator& ranks, std::string_view name, T* vector, std::size_t count, std::span<std::size_t const> layers)
        : ranks_(ranks), name_(name), vector_(vector), count_(count) {
        for (std::size_t begin = 0; auto const layer : layers) ends_.push_back(begin += layer);
        sums_.resize(ends_.size());
        theirs_.resize(ends_.size());
        power_ = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks.size())));
        bool const alone_in_group = ranks.rank() + power_ >= ranks.size();
        scratch_.resize(alone_in_group ? (count + 1) / 2 : count);
    }

    void run() {
        int const rank = ranks_.rank();
        if (rank >= power_) {  // folded into another rank, which sends the result
            exchange(rank - power_, {0, count_}, nullptr, 0);
            exchange(rank - power_, {}, vector_, count_);
            return;
        }
        bool const folds = rank + power_ < ranks_.size();
        if (folds) {
            exchange(rank + power_, {}, scratch_.data(), count_);
            combine_with(scratch_.data(), {0, count_}, true, 1);
        }
        halve();
        if (folds) exchange(rank + power_, {0, count_}, nullptr, 0);
    }

  private:
    /// At distance d, d ranks share a vector; the two halves of an aligned group of 2d ranks exchange parts of theirs.
    void halve() {
        int const rank = ranks_.rank();
        std::vector<element_range> kept{{0, count_}};
        for (int distance = 1; distance < power_; distance *= 2) {
            element_range const whole = kept.back();
            element_range const first{whole.first, whole.count / 2};
            element_range const second{whole.first + first.count, whole.count - first.count};
            bool const lower = (rank & distance) == 0;
            element_range const mine = lower ? first : second;
            exchange(rank ^ distance, lower ? second : first, scratch_.data(), mine.count);
            combine_with(scratch_.data(), mine, lower, 2 * distance);
            kept.push_back(mine);
        }
        for (int distance = power_ / 2; distance >= 1; distance /= 2) {
            element_range const mine = kept.back();
            kept.pop_back();
            element_range const whole = kept.back();
            bool const lower = (rank & distance) == 0;
            T* const other = vector_ + (lower ? mine.first + mine.count : whole.first);
            exchange(rank ^ distance, mine, other, whole.count - mine.count);
        }
    }

    void exchange(int peer, element_range const& sent, T* into, std::size_t count) {
        constexpr dtype type = dtype_of<T>();
        ranks_.sendrecv(name_, peer, {vector_ + sent.first, sent.count, type}, {into, count, type}).wait();
    }

    /// Makes this part of the vector the Adasum with `other`, which is b if this one is `lower`, else a. The products are summed
    /// over the aligned group of `group` ranks, each of which has another part.
    void combine_with(T const* other, element_range const& part, bool lower, int group) {
        std::fill(sums_.begin(), sums_.end(), products{});
        for_layers(part, [&](std::size_t layer, T* mine, std::size_t first, std::size_t count) {
            sums_[layer] = lower ? multiply_out(mine, other + first, count) : multiply_out(other + first, mine, count);
        });
        sum_over(group);
        for_layers(part, [&](std::size_t layer, T* mine, std::size_t first, std::size_t count) {
            auto const [from_a, from_b] = weigh(sums_[layer][0], sums_[layer][1], sums_[layer][2]);
            double const own = lower ? from_a : from_b, others = lower ? from_b : from_a;
            T const* const theirs = other + first;
            for (std::size_t i = 0; i < count; ++i)
                mine[i] = static_cast<T>(own * static_cast<double>(mine[i]) + others * static_cast<double>(theirs[i]));
        });
    }

    /// Calls `body(layer, its elements within the part, their place in the part, their number)`.
    template <typename Body>
    void for_layers(element_range const& part, Body&& body) {
        std::size_t const end = part.first + part.count;
        auto layer = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), part.first) - ends_.begin());
        for (std::size_t at = part.first; at < end; ++layer) {
            std::size_t const next = std::min(end, ends_[layer]);
            if (next > at) body(layer, vector_ + at, at - part.first, next - at);
            at = next;
        }
    }

    /// Sums by recursive doubling: both sides add the same two numbers, so that all ranks of the group get the same bits.
    void sum_over(int group) {
        auto const view = [](std::vector<products>& of) {
            return tensor_view{of.data(), of.size() * 3, dtype::f64, memory_kind::host};
        };
        for (int distance = 1; distance < group; distance *= 2) {
            ranks_.sendrecv(name_, ranks_.rank() ^ distance, view(sums_), view(theirs_)).wait();
            for (std::size_t layer = 0; layer < sums_.size(); ++layer)
                for (std::size_t i = 0; i < 3; ++i) sums_[layer][i] += theirs_[layer][i];
        }
    }

    communicator& ranks_;
    std::string_view name_;
    T* vector_;
    std::size_t count_;
    int power_ = 1;
    std::vector<std::size_t> ends_;  // the layers end at these elements
    std::vector<products> sums_, theirs_;
    std::vector<T> scratch_;
};

template <typename T>
void run_in_place(communicator& ranks, std::string_view name, T* vector, std::size_t count, std::span<std::size_t const> layers) {
    auto run = std::make_unique<reduction_run<T>>(ranks, name, vector, count, layers);
    try {
        run->run();
    } catch (...) {
        detail::keep_while_ranks_are_late(std::move(run));  // a late rank may still cause writes to its memory
        throw;
    }
}

/// f16 and bf16 are sent and combined in f32.
template <typename T>
void run_widened(communicator& ranks, std::string_view name, tensor_view const& in, tensor_view const& out,
                 std::span<std::size_t const> layers) {
    simd const level = best_simd();
    auto wide = std::make_unique_for_overwrite<float[]>(in.count);
    to_float(static_cast<T const*>(in.data), wide.get(), in.count, level);
    try {
        run_in_place(ranks, name, wide.get(), in.count, layers);
    } catch (...) {
        detail::keep_while_ranks_are_late(std::move(wide));
        throw;
    }
    from_float(wide.get(), static_cast<T*>(out.data), in.count, level);
}

std::string fault_of_layers(std::span<std::size_t const> layers, std::size_t count) {
    std::size_t sum = 0;
    for (auto const layer : layers) {
        if (layer > count - sum) return fmt::format("the layers have more elements than the {} of \"in\"", count);
        sum += layer;
    }
    return sum == count ? std::string{} : fmt::format("the layers have {} elements, \"in\" has {}", sum, count);
}

void check(communicator& ranks, std::string_view name, tensor_view const& in, tensor_view const& out,
           std::span<std::size_t const> layers) {
    auto fault = detail::fault_of({collective::kind::allreduce, in, out, reduction::sum}, {ranks.rank(), ranks.size()});
    if (fault.empty() && !is_floating(in.type))
        fault = fmt::format("{} has no fractions, which the weights need; convert to f32", to_string(in.type));
    if (fault.empty()) fault = fault_of_layers(layers, in.count);
    if (!fault.empty())
        throw comm_error(errc::usage, fmt::format("adasum of \"{}\" ({}): {}", name, speaker(ranks.who()), fault));
}

}  // namespace

adasum_weights weigh(double ab, double aa, double bb) noexcept {
    return {aa == 0 ? 1 : 1 - ab / (2 * aa), bb == 0 ? 1 : 1 - ab / (2 * bb)};
}

void adasum(communicator& ranks, std::string_view name, tensor_view in, tensor_view out, std::span<std::size_t const> layers) {
    std::array<std::size_t, 1> const whole{in.count};
    if (layers.empty()) layers = whole;
    check(ranks, name, in, out, layers);
    if (in.count == 0) return;
    if (in.type == dtype::f16) return run_widened<half>(ranks, name, in, out, layers);
    if (in.type == dtype::bf16) return run_widened<bfloat16>(ranks, name, in, out, layers);
    if (in.data != out.data) std::memcpy(out.data, in.data, in.bytes());
    if (in.type == dtype::f32) return run_in_place(ranks, name, static_cast<float*>(out.data), in.count, layers);
    run_in_place(ranks, name, static_cast<double*>(out.data), in.count, layers);
}

}  // namespace muster
