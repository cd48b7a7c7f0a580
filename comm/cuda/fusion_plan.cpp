#include "comm/cuda/fusion_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.hpp"

namespace muster::cuda {

namespace {

template <typename Way>
constexpr fusion_way way_of(std::string_view kernel, bool scales) {
    return {kernel,
            fusion_shape<Way>::from_bytes,
            fusion_shape<Way>::to_bytes,
            fusion_shape<Way>::elements,
            sizeof(typename Way::factor),
            scales,
            Way::keeps};
}

fusion_way copy_way(std::size_t bytes) {
    switch (bytes) {
        case 8: return way_of<ways::copy_8>("muster_copy_8", false);
        case 4: return way_of<ways::copy_4>("muster_copy_4", false);
        case 2: return way_of<ways::copy_2>("muster_copy_2", false);
        default: return way_of<ways::copy_1>("muster_copy_1", false);
    }
}

struct scaled_row {
    dtype from, to;
    fusion_way way;
};

constexpr std::array scaled_rows{
    scaled_row{dtype::f32, dtype::f32, way_of<ways::f32_f32>("muster_f32_f32", true)},
    scaled_row{dtype::f32, dtype::f16, way_of<ways::f32_f16>("muster_f32_f16", true)},
    scaled_row{dtype::f32, dtype::bf16, way_of<ways::f32_bf16>("muster_f32_bf16", true)},
    scaled_row{dtype::f16, dtype::f32, way_of<ways::f16_f32>("muster_f16_f32", true)},
    scaled_row{dtype::bf16, dtype::f32, way_of<ways::bf16_f32>("muster_bf16_f32", true)},
    scaled_row{dtype::f16, dtype::f16, way_of<ways::f16_f16>("muster_f16_f16", true)},
    scaled_row{dtype::bf16, dtype::bf16, way_of<ways::bf16_bf16>("muster_bf16_bf16", true)},
    scaled_row{dtype::f64, dtype::f64, way_of<ways::f64_f64>("muster_f64_f64", true)},
};

constexpr std::array keeping_rows{
    scaled_row{dtype::f32, dtype::f16, way_of<ways::f32_f16_kept>("muster_f32_f16_kept", true)},
    scaled_row{dtype::f32, dtype::bf16, way_of<ways::f32_bf16_kept>("muster_f32_bf16_kept", true)},
};

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

void check_residual(fusion_item const& item, std::size_t index, fusion_way const& way) {
    std::uint64_t const bytes = item.count * sizeof(float);
    if (item.residual != 0 && item.residual % sizeof(float) == 0 &&
        !overlap(item.residual, bytes, item.from, item.count * way.from_bytes) &&
        !overlap(item.residual, bytes, item.to, item.count * way.to_bytes))
        return;
    throw error(errc::usage, fmt::format("{}: tensor {} of {} elements goes from {:#x} to {:#x}, its residual at {:#x} must be "
                                         "aligned to 4 bytes and overlap neither",
                                         way.kernel, index, item.count, item.from, item.to, item.residual));
}

void check_item(fusion_item const& item, std::size_t index, fusion_way const& way) {
    if (item.from == 0 || item.to == 0 || item.from % way.from_bytes != 0 || item.to % way.to_bytes != 0)
        throw error(errc::usage, fmt::format("{}: tensor {} goes from {:#x} to {:#x}, which must be aligned to {} and {} bytes",
                                             way.kernel, index, item.from, item.to, way.from_bytes, way.to_bytes));
    if (way.keeps) check_residual(item, index, way);
    if (item.from == item.to && way.from_bytes == way.to_bytes) return;
    if (overlap(item.from, item.count * way.from_bytes, item.to, item.count * way.to_bytes))
        throw error(errc::usage, fmt::format("{}: tensor {} of {} elements goes from {:#x} to {:#x}, which overlap; give it "
                                             "memory apart",
                                             way.kernel, index, item.count, item.from, item.to));
}

constexpr std::uint64_t ceil_div(std::uint64_t a, std::uint64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

fusion_way choose_way(dtype from, dtype to, double factor) {
    if (from == to && factor == 1) return copy_way(size_of(from));
    for (auto const& row : scaled_rows)
        if (row.from == from && row.to == to) return row.way;
    if (!is_floating(from) && from == to)
        throw error(errc::usage, fmt::format("{} cannot be scaled by {}: the result is no integer", to_string(from), factor));
    throw error(errc::unavailable, fmt::format("there is no kernel from {} to {}; f32 goes to and from f16 and bf16",
                                               to_string(from), to_string(to)));
}

fusion_way choose_keeping_way(dtype from, dtype to) {
    for (auto const& row : keeping_rows)
        if (row.from == from && row.to == to) return row.way;
    throw error(errc::usage, fmt::format("from {} to {} nothing is kept of what rounding loses: that is for f32 to f16 or bf16",
                                         to_string(from), to_string(to)));
}

fusion_plan plan_fusion(std::span<fusion_item const> items, fusion_way const& way, std::uint32_t most_blocks) {
    if (items.size() > std::numeric_limits<std::uint32_t>::max() - 1)
        throw error(errc::invalid_data, fmt::format("{}: {} tensors are more than one launch takes", way.kernel, items.size()));
    fusion_plan plan;
    plan.segments.reserve(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
        fusion_item const& item = items[i];
        if (item.count == 0) continue;
        check_item(item, i, way);
        bool const to_is_narrow = way.to_bytes <= way.from_bytes;
        std::uint64_t const skew = to_is_narrow ? item.to % 16 / way.to_bytes : item.from % 16 / way.from_bytes;
        plan.segments.push_back({item.from, item.to, item.count, plan.pieces});
        if (way.keeps) plan.residuals.push_back(item.residual);
        plan.pieces += ceil_div(item.count + skew, way.piece_elements);
    }
    if (plan.pieces == 0) return plan;
    std::uint64_t const share = ceil_div(plan.pieces, std::max(most_blocks, 1u));
    std::uint64_t const rounded = ceil_div(share, fusion_threads) * fusion_threads;
    if (rounded > std::numeric_limits<std::uint32_t>::max())
        throw error(errc::invalid_data, fmt::format("{}: {} pieces are too many for {} blocks; move fewer tensors at once",
                                                    way.kernel, plan.pieces, most_blocks));
    plan.pieces_per_block = static_cast<std::uint32_t>(rounded);
    plan.blocks = static_cast<std::uint32_t>(ceil_div(plan.pieces, plan.pieces_per_block));
    plan.starts.reserve(plan.blocks + 1);
    std::uint32_t at = 0;
    for (std::uint32_t block = 0; block < plan.blocks; ++block) {
        std::uint64_t const first = static_cast<std::uint64_t>(block) * plan.pieces_per_block;
        while (at + 1 < plan.segments.size() && plan.segments[at + 1].first_piece <= first) ++at;
        plan.starts.push_back(at);
    }
    plan.starts.push_back(static_cast<std::uint32_t>(plan.segments.size() - 1));
    return plan;
}

std::vector<std::size_t> fused_offsets(std::span<std::size_t const> counts, dtype buffer) {
    std::size_t const step = 16 / size_of(buffer);
    std::vector<std::size_t> offsets;
    offsets.reserve(counts.size() + 1);
    std::size_t at = 0;
    for (std::size_t const count : counts) {
        offsets.push_back(at);
        at += (count + step - 1) / step * step;
    }
    offsets.push_back(at);
    return offsets;
}

}  // namespace muster::cuda
