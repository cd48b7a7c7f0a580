#include "bench/collectives/rank/link_fit.hpp"

#include <cmath>

namespace muster {

namespace {

struct line {
    double alpha = 0, each_byte = 0;
};

/// Weights are 1 / us: relative errors count, so that small messages do.
std::optional<line> line_through(std::span<timed_size const> sizes, std::size_t left_out) {
    double one = 0, x = 0, xx = 0, y = 0, xy = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (i == left_out || !(sizes[i].us > 0)) continue;
        double const w = 1 / (sizes[i].us * sizes[i].us), b = sizes[i].bytes;
        one += w, x += w * b, xx += w * b * b, y += w * sizes[i].us, xy += w * b * sizes[i].us;
        ++count;
    }
    double const spread = one * xx - x * x;
    if (count < 2 || !(spread > 0)) return {};
    line out{(xx * y - x * xy) / spread, (one * xy - x * y) / spread};
    if (out.alpha < 0) out = {0, xy / xx};
    if (!(out.each_byte > 0)) return {};
    return out;
}

}  // namespace

std::optional<link_fit> fit_link(std::span<timed_size const> sizes) {
    auto const all = line_through(sizes, sizes.size());
    if (!all || sizes.size() < 3) return {};
    link_fit out{all->alpha, 1e-3 / all->each_byte, 0, {}};
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        out.relative_rms += std::pow(out.us(sizes[i].bytes) / sizes[i].us - 1, 2);
        auto const others = line_through(sizes, i);
        if (others) out.left_out.push_back((others->alpha + others->each_byte * sizes[i].bytes) / sizes[i].us - 1);
    }
    out.relative_rms = std::sqrt(out.relative_rms / static_cast<double>(sizes.size()));
    return out;
}

}  // namespace muster
