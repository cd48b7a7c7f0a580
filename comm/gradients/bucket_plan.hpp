// The plan of buckets that gradients are cut into, and their layout in memory. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster {

struct gradient_view {
    std::string name;
    std::span<float> values;
};

/// Gradients `first` … `first + count - 1`.
struct bucket_range {
    std::size_t first = 0;
    std::size_t count = 0;
    bool operator==(bucket_range const&) const = default;
};

/// Cuts `elements` (of each gradient, four bytes each) in order: a bucket is closed once it holds `bucket_bytes`, the first once
/// it holds `first_bucket_bytes`.
std::vector<bucket_range> plan_buckets(std::span<std::size_t const> elements, std::size_t first_bucket_bytes,
                                       std::size_t bucket_bytes);

/// The order of the gradients in memory if together they fill one piece of it without gap or overlap, else nothing. Gradients
/// without elements come last, in the order given.
std::optional<std::vector<std::uint32_t>> memory_order(std::span<gradient_view const> gradients);

/// Text that is equal for equal lists of names and sizes.
std::string serialise(std::span<gradient_view const> gradients);

/// What is the first difference between two such texts, in words: "gradient 2 is "b" with 3 elements here and "c" with 4 on rank
/// 0". Nothing if they are equal.
std::optional<std::string> first_difference(std::string_view here, std::string_view on_rank_0);

}  // namespace muster
