#include "bench/collectives/collectives_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "comm/tensor/reduction_kernels.hpp"

namespace muster {

std::string_view to_string(memory_of_tensors memory) noexcept {
    constexpr std::string_view names[]{"plain", "allocated", "device"};
    return names[static_cast<std::size_t>(memory)];
}

collectives_memory::collectives_memory(std::size_t bytes, cuda::device const* on) : bytes_(bytes), on_(on) {
    if (on_ == nullptr) {
        owned_.resize(bytes);
        host_ = owned_.data();
    } else {
        device_ = cuda::make_memory(*on_, std::max(bytes, std::size_t{1}));
    }
}

collectives_memory::collectives_memory(std::byte* lent, std::size_t bytes) noexcept : bytes_(bytes), host_(lent) {}

tensor_view collectives_memory::view(std::size_t offset, std::size_t count, dtype type) {
    if (on_ == nullptr) return {host_ + offset, count, type, memory_kind::host};
    return {std::bit_cast<void*>(device_.get().handle + offset), count, type, memory_kind::device};
}

void collectives_memory::upload(std::byte const* from) {
    cuda::device::scope const current(*on_);
    cuda::check(on_->with(), on_->with().copy_host_to_device(device_.get().handle, from, bytes_, nullptr), "cuMemcpyHtoDAsync");
    cuda::check(on_->with(), on_->with().stream_synchronize(nullptr), "cuStreamSynchronize");
}

void collectives_memory::download(std::byte* to) const {
    cuda::device::scope const current(*on_);
    cuda::check(on_->with(), on_->with().copy_device_to_host(to, device_.get().handle, bytes_, nullptr), "cuMemcpyDtoHAsync");
    cuda::check(on_->with(), on_->with().stream_synchronize(nullptr), "cuStreamSynchronize");
}

namespace {

constexpr std::size_t block = 256;
using numbers = std::array<unsigned, block>;

/// The greatest whole number up to which all are exact.
unsigned limit_of(dtype type) noexcept {
    switch (type) {
        case dtype::f16: return 2048;
        case dtype::bf16: return 256;
        case dtype::u8: return 255;
        case dtype::i8: return 127;
        default: return 1u << 24;
    }
}

void make_numbers(value_rule const& rule, numbers& to, std::size_t first, sample_place at, unsigned rank) noexcept {
    unsigned const begin = static_cast<unsigned>(first) + 2654435u * at.which + 40503u * at.seed + 1000003u * rank;
    if (rank >= rule.active) {
        to.fill(rule.product ? 1 : 0);
        return;
    }
    for (unsigned i = 0; i < block; ++i) {
        unsigned const h = ((begin + i) * 2654435761u) >> 26;
        to[i] = rule.product ? 1 + (h >> 5) : rule.scale * (h & rule.mask);
    }
}

void combine_numbers(reduction how, numbers& with, numbers const& other) noexcept {
    for (std::size_t i = 0; i < block; ++i) switch (how) {
            case reduction::sum:
            case reduction::average: with[i] += other[i]; break;
            case reduction::product: with[i] *= other[i]; break;
            case reduction::min: with[i] = std::min(with[i], other[i]); break;
            case reduction::max: with[i] = std::max(with[i], other[i]); break;
            case reduction::adasum: break;  // no collective of a communicator
        }
}

template <typename T>
constexpr bool is_narrow = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <typename T>
T element_of(unsigned number) noexcept {
    if constexpr (is_narrow<T>)
        return T(static_cast<float>(number));
    else
        return static_cast<T>(number);
}

template <typename T>
double number_of(T element) noexcept {
    if constexpr (is_narrow<T>)
        return static_cast<double>(static_cast<float>(element));
    else
        return static_cast<double>(element);
}

/// Calls make(numbers, first) for each block of what is expected, and compares; a number stands for its `divisor`-th.
template <typename Make>
std::size_t compare(dtype type, void const* got, std::size_t count, std::size_t first, unsigned divisor, Make&& make) {
    return with_dtype(type, [&]<typename element>() {
        auto const* const is = static_cast<element const*>(got);
        std::size_t wrong = 0;
        numbers expected;
        for (std::size_t done = 0; done < count; done += block) {
            make(expected, first + done);
            std::size_t const most = std::min(block, count - done);
            for (std::size_t i = 0; i < most; ++i)
                wrong += number_of(is[done + i]) != static_cast<double>(expected[i]) / divisor ? 1 : 0;
        }
        return wrong;
    });
}

}  // namespace

value_rule rule_for(collective_case const& of, int ranks) noexcept {
    auto const all = static_cast<unsigned>(ranks);
    value_rule rule;
    rule.active = all;
    if (!of.reduces() || of.how == reduction::min || of.how == reduction::max) return rule;
    if (of.how == reduction::product) {
        rule.product = true;
        rule.active = std::min(all, 6u);
        return rule;
    }
    // An average of whole numbers is one if each is a multiple of the ranks; a division by a power of two is exact anyway.
    if (of.how == reduction::average && !std::has_single_bit(all)) rule.scale = all;
    unsigned const limit = limit_of(of.type) / rule.scale;
    rule.active = std::min(all, limit);
    rule.mask = std::min(std::bit_floor(rule.active == 0 ? 1 : limit / rule.active + 1) - 1, 63u);
    return rule;
}

std::string to_order(collective_case const& of, value_rule const& rule) {
    return fmt::format("kind {} {} {} {} {} {} {} {}", to_string(of.what), to_string(of.type), redop_of(of), of.root, rule.mask,
                       rule.scale, rule.active, rule.product ? 1 : 0);
}

void fill_values(value_rule const& rule, dtype type, void* to, std::size_t count, std::size_t first, sample_place at, int rank) {
    with_dtype(type, [&]<typename element>() {
        auto* const elements = static_cast<element*>(to);
        numbers made;
        for (std::size_t done = 0; done < count; done += block) {
            make_numbers(rule, made, first + done, at, static_cast<unsigned>(rank));
            std::size_t const most = std::min(block, count - done);
            for (std::size_t i = 0; i < most; ++i) elements[done + i] = element_of<element>(made[i]);
        }
    });
}

std::size_t count_wrong(value_rule const& rule, dtype type, void const* got, std::size_t count, std::size_t first,
                        sample_place at, int rank) {
    return compare(type, got, count, first, 1, [&](numbers& expected, std::size_t begin) {
        make_numbers(rule, expected, begin, at, static_cast<unsigned>(rank));
    });
}

std::size_t count_wrong_reduced(value_rule const& rule, dtype type, reduction how, void const* got, std::size_t count,
                                std::size_t first, sample_place at, int ranks) {
    unsigned const divisor = how == reduction::average ? static_cast<unsigned>(ranks) : 1;
    return compare(type, got, count, first, divisor, [&](numbers& expected, std::size_t begin) {
        numbers other;
        make_numbers(rule, expected, begin, at, 0);
        for (int rank = 1; rank < ranks; ++rank) {
            make_numbers(rule, other, begin, at, static_cast<unsigned>(rank));
            combine_numbers(how, expected, other);
        }
    });
}

}  // namespace muster
