#include "bench/simulate/published_fit.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "bench/study/published_table.hpp"

namespace muster {

namespace {

constexpr std::size_t unknowns = 4;
using row = std::array<double, unknowns>;
using matrix = std::array<row, unknowns>;

double known_at(known_seconds const& known, std::size_t point) noexcept {
    return point < known.size() ? known[point] : 0;
}

row row_of(int ranks) noexcept {
    double const share = 1.0 / ranks;
    return {ranks <= 2 ? share : 0, ranks > 2 ? share : 0, 1, ranks > 8 ? 1.0 : 0};
}

/// Gauss with pivots; nothing if singular.
std::optional<row> solve(matrix a, row b) {
    for (std::size_t c = 0; c < unknowns; ++c) {
        std::size_t best = c;
        for (std::size_t r = c + 1; r < unknowns; ++r)
            if (std::abs(a[r][c]) > std::abs(a[best][c])) best = r;
        if (std::abs(a[best][c]) < 1e-12) return std::nullopt;
        std::swap(a[c], a[best]);
        std::swap(b[c], b[best]);
        for (std::size_t r = 0; r < unknowns; ++r) {
            if (r == c) continue;
            double const factor = a[r][c] / a[c][c];
            for (std::size_t k = c; k < unknowns; ++k) a[r][k] -= factor * a[c][k];
            b[r] -= factor * b[c];
        }
    }
    row x{};
    for (std::size_t c = 0; c < unknowns; ++c) x[c] = b[c] / a[c][c];
    return x;
}

}  // namespace

double published_fit::at(int ranks) const noexcept {
    auto const of = row_of(ranks);
    return of[0] * slow_s + of[1] * fast_s + of[2] * constant_s + of[3] * several_nodes_s;
}

std::optional<published_fit> fit_published(std::span<table_point const> points, known_seconds const& known) {
    matrix a{};
    row b{};
    for (std::size_t p = 0; p < points.size(); ++p) {
        auto const& point = points[p];
        double const rest = 1 - known_at(known, p) / point.seconds;
        row x = row_of(point.ranks);
        for (auto& value : x) value /= point.seconds;
        for (std::size_t i = 0; i < unknowns; ++i) {
            b[i] += rest * x[i];
            for (std::size_t j = 0; j < unknowns; ++j) a[i][j] += x[i] * x[j];
        }
    }
    // Sums of relative values are small: scaled to one, so that a zero is told from them.
    for (std::size_t i = 0; i < unknowns; ++i) {
        double const scale = a[i][i];
        if (scale <= 0) return std::nullopt;
        for (auto& value : a[i]) value /= scale;
        b[i] /= scale;
    }
    auto const x = solve(a, b);
    if (!x) return std::nullopt;
    return published_fit{(*x)[0], (*x)[1], (*x)[2], (*x)[3]};
}

double relative_rms(published_fit const& fit, std::span<table_point const> points, known_seconds const& known) {
    double sum = 0;
    for (std::size_t i = 0; i < points.size(); ++i)
        sum += std::pow((fit.at(points[i].ranks) + known_at(known, i)) / points[i].seconds - 1, 2);
    return std::sqrt(sum / static_cast<double>(points.size()));
}

std::vector<std::optional<double>> leave_one_out(std::span<table_point const> points, known_seconds const& known) {
    std::vector<std::optional<double>> errors;
    for (std::size_t left = 0; left < points.size(); ++left) {
        std::vector<table_point> others(points.begin(), points.end());
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
        auto of_others = known;
        if (!known.empty()) of_others.erase(of_others.begin() + static_cast<std::ptrdiff_t>(left));
        auto const fit = fit_published(others, of_others);
        errors.push_back(fit ? std::optional((fit->at(points[left].ranks) + known_at(known, left)) / points[left].seconds - 1)
                             : std::nullopt);
    }
    return errors;
}

double published_wait_s(int ranks) noexcept {
    constexpr double turn_s = 1e-3, waits_a_step = 2;
    return ranks < 2 ? 0 : waits_a_step * turn_s * ranks / (ranks + 1);
}

std::vector<table_point> published_points(std::string_view network) {
    if (network != "mnist" && network != "cifar10")
        throw error(errc::usage,
                    fmt::format("the published table has no column of '{}'; give --network mnist or cifar10", network));
    std::vector<table_point> points;
    for (auto const& each : published_rows) points.push_back({each.gpus, network == "mnist" ? each.mnist_s : each.cifar_s});
    return points;
}

double published_size::steps(int ranks) const noexcept {
    return std::ceil(static_cast<double>(images) / (batch * static_cast<double>(ranks))) * epochs;
}

published_size size_of_published(std::string_view network) {
    published_points(network);
    return {.images = network == "mnist" ? 60000 : 50000};
}

}  // namespace muster
