// The elements of measured tensors: whole numbers whose every reduction is exact in their type.
#pragma once

#include <cstddef>
#include <string>

#include "bench/collectives/collectives_case.hpp"

namespace muster {

/// How ranks make their elements: element i of tensor `which` on `rank` is
///     h = ((i + 2654435 which + 40503 seed + 1000003 rank) * 2654435761 mod 2^32) >> 26      (multiplicative hashing, Knuth 6.4)
///     rank >= active ? (product ? 1 : 0) : product ? 1 + (h >> 5) : scale * (h & mask)
/// all of it modulo 2^32. The peers (bench/peers) know the same rule; it is in the order that begins a measurement.
struct value_rule {
    unsigned mask = 63;
    unsigned scale = 1;
    unsigned active = 1;
    bool product = false;
    bool operator==(value_rule const&) const = default;
};

/// The widest rule under which sums, averages and products over so many ranks, and all that comes between, are exact in the type.
value_rule rule_for(collective_case const& of, int ranks) noexcept;

/// "kind allreduce f32 sum 0 63 1 2 0": the order that tells a rank what is measured, with the rule.
std::string to_order(collective_case const& of, value_rule const& rule);

/// Which tensor of which sample.
struct sample_place {
    unsigned which = 0;
    unsigned seed = 0;
};

/// Elements `first` and on of the rank's tensor.
void fill_values(value_rule const& rule, dtype type, void* to, std::size_t count, std::size_t first, sample_place at, int rank);

/// How many of `count` elements are not elements `first` and on of that rank's tensor.
std::size_t count_wrong(value_rule const& rule, dtype type, void const* got, std::size_t count, std::size_t first,
                        sample_place at, int rank);

/// How many are not the reduction of these elements of all ranks.
std::size_t count_wrong_reduced(value_rule const& rule, dtype type, reduction how, void const* got, std::size_t count,
                                std::size_t first, sample_place at, int ranks);

}  // namespace muster
