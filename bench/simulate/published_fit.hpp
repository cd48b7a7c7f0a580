// The fit of the published 1-32 GPU table: two input rates, a constant, a constant of several nodes. Pure.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace muster {

struct table_point {
    int ranks = 1;
    double seconds = 0;
    bool operator==(table_point const&) const = default;
};

/// Seconds of the whole run of N ranks: slow_s / N for N <= 2, where each rank shared one core with its loader (Open MPI's default
/// binding), fast_s / N above; plus constant_s; plus several_nodes_s above 8 ranks. Least squares of the relative errors.
struct published_fit {
    double slow_s = 0, fast_s = 0, constant_s = 0, several_nodes_s = 0;
    double at(int ranks) const noexcept;
    bool operator==(published_fit const&) const = default;
};

/// Of each point, the seconds that are known without the fit, which explains the rest; empty: nothing is known.
using known_seconds = std::vector<double>;

/// Nothing where the points do not determine it: one on each side of 2, one above 8 and two more than that at least.
std::optional<published_fit> fit_published(std::span<table_point const> points, known_seconds const& known = {});

/// Root of the mean square of the relative errors.
double relative_rms(published_fit const& fit, std::span<table_point const> points, known_seconds const& known = {});

/// Of each point, the relative error of what the others' fit predicts for it; nothing where they do not determine a fit.
std::vector<std::optional<double>> leave_one_out(std::span<table_point const> points, known_seconds const& known = {});

/// Seconds of a step that ranks of the published runs waited for Horovod's loop, which turns once in a millisecond: gradients and
/// loss each wait until the last of N ranks' loops has turned, N / (N + 1) of a turn where the loops are independent. That the loss
/// waits a turn of its own is assumed. 0 for one rank.
double published_wait_s(int ranks) noexcept;

/// The published table's column of "mnist" or "cifar10". Throws errc::usage for another name.
std::vector<table_point> published_points(std::string_view network);

/// Steps of an epoch of `ranks`, at 64 images a rank, and its images.
struct published_size {
    int images = 0;
    int epochs = 32;
    int batch = 64;
    double steps(int ranks) const noexcept;  ///< of the whole run
};
published_size size_of_published(std::string_view network);

}  // namespace muster
