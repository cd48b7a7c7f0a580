// A request to study the built-in training: reads its options into a plan.
#pragma once

#include <span>
#include <string>

#include "base/command/given_options.hpp"
#include "bench/study/study.hpp"

namespace muster {

/// Names of the options of `scale` that are for the built-in training alone.
std::span<char const* const> training_option_names() noexcept;

/// Completes a plan whose ranks are known: program, protocol, series, judged metric and notes. Throws errc::usage, errc::not_found.
void read_training_request(given_options const& given, study_plan& plan);

/// "muster-bench train", "muster-bench train, cifar10 (generated images, no data set)": with the network where it is not the usual one,
/// and with what every reader must know. Pure.
std::string training_name(given_options const& given, study_plan const& plan);

}  // namespace muster
