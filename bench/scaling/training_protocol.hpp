// The protocols of studies of the built-in training: how it trains, and by what its numbers of ranks are judged.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/study/study.hpp"

namespace muster {

struct training_protocol {
    std::string_view name;
    int epochs = 1;  ///< a study with fewer is a shortened one
    judged_metric judged;
    work_series series = work_series::as_given;
    bool averages_loss = false;  ///< over the ranks in every step, waiting for it, as the published runs did
    std::string_view meaning;    ///< in a few words
};

std::span<training_protocol const> training_protocols() noexcept;

/// Throws parse_error (errc::usage), naming the protocols.
training_protocol const& training_protocol_named(std::string const& name);

}  // namespace muster
