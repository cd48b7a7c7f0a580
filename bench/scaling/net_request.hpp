// A request to study a built-in network: reads its options into a plan.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/environment.hpp"
#include "bench/study/study.hpp"

namespace muster {

struct training_protocol {
    std::string_view name;
    int epochs = 1;  ///< a study with fewer is a shortened one
    judged_metric judged;
    work_series series = work_series::as_given;
    bool averages_loss = false;  ///< averages it over the ranks in every step, and waits for it, as the published runs did
    std::string_view meaning;    ///< in a few words
};

std::span<training_protocol const> training_protocols() noexcept;

/// Throws parse_error (errc::usage), naming the protocols.
training_protocol const& training_protocol_named(std::string const& name);

/// Returns the names of the options of `scale` that are only for these networks.
std::span<char const* const> net_option_names() noexcept;

/// Throws errc::usage unless the batch of all ranks divides among each number of them.
void require_divided(long batch, std::vector<int> const& ranks);

/// Completes a plan whose ranks are known: program, protocol, series, judged metric and notes. mnist and cifar10 are trained by
/// examples/published_table.py, of which `folder` will hold a copy, in a Python that has PyTorch; resnet50 and gpt2-small are steps of timed
/// compute, by muster-bench steps. `here`: the runs are made on this machine, so that its Python is asked. Throws errc::usage,
/// errc::not_found, errc::unavailable.
void read_net_request(given_options const& given, environment const& variables, std::filesystem::path const& folder, bool here,
                      study_plan& plan);

/// Writes that copy, if the plan has one, into its folder, which exists. Throws errc::system.
void write_net_program(study_plan const& plan);

/// Returns the network, and what every reader must know: "mnist", "cifar10 (generated images, no data set)". Pure.
std::string net_name(study_plan const& plan);

}  // namespace muster
