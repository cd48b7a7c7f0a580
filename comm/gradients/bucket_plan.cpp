#include "comm/gradients/bucket_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "base/text.hpp"

namespace muster {

namespace {

struct entry {
    std::string_view name;
    std::string_view elements;
};

/// One entry a pair of lines. A name with a line break is cut: it still differs where it differs.
std::vector<entry> entries_of(std::string_view text) {
    std::vector<entry> entries;
    auto const lines = split(text, '\n');
    for (std::size_t i = 0; i + 1 < lines.size(); i += 2) entries.push_back({lines[i + 1], lines[i]});
    return entries;
}

}  // namespace

std::vector<bucket_range> plan_buckets(std::span<std::size_t const> elements, std::size_t first_bucket_bytes,
                                       std::size_t bucket_bytes) {
    std::vector<bucket_range> buckets;
    bucket_range current;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < elements.size(); ++i) {
        ++current.count;
        bytes += elements[i] * sizeof(float);
        if (bytes < (buckets.empty() ? first_bucket_bytes : bucket_bytes)) continue;
        buckets.push_back(current);
        current = {i + 1, 0};
        bytes = 0;
    }
    if (current.count != 0) buckets.push_back(current);
    return buckets;
}

std::optional<std::vector<std::uint32_t>> memory_order(std::span<gradient_view const> gradients) {
    std::vector<std::uint32_t> order(gradients.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        auto const& left = gradients[a].values;
        auto const& right = gradients[b].values;
        if (left.empty() || right.empty()) return !left.empty() && right.empty();
        return std::less<float*>{}(left.data(), right.data());
    });
    for (std::size_t i = 1; i < order.size(); ++i) {
        auto const& before = gradients[order[i - 1]].values;
        auto const& here = gradients[order[i]].values;
        if (!here.empty() && before.data() + before.size() != here.data()) return std::nullopt;
    }
    return order;
}

std::string serialise(std::span<gradient_view const> gradients) {
    std::string text;
    for (auto const& gradient : gradients) {
        text += fmt::format("{}\n{}\n", gradient.values.size(), gradient.name);
    }
    return text;
}

std::optional<std::string> first_difference(std::string_view here, std::string_view on_rank_0) {
    if (here == on_rank_0) return std::nullopt;
    auto const mine = entries_of(here);
    auto const theirs = entries_of(on_rank_0);
    for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i)
        if (mine[i].name != theirs[i].name || mine[i].elements != theirs[i].elements)
            return fmt::format("gradient {} is \"{}\" with {} elements here and \"{}\" with {} on rank 0", i, mine[i].name,
                               mine[i].elements, theirs[i].name, theirs[i].elements);
    bool const more_here = mine.size() > theirs.size();
    auto const& extra = more_here ? mine : theirs;
    auto const at = std::min(mine.size(), theirs.size());
    if (at == extra.size()) return "the names differ in their line breaks";
    return fmt::format("there are {} gradients here and {} on rank 0; the first one {} is \"{}\" with {} elements", mine.size(),
                       theirs.size(), more_here ? "too many" : "missing", extra[at].name, extra[at].elements);
}

}  // namespace muster
