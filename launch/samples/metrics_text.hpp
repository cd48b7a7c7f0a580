// The samples of a run as metrics for a site's monitoring.
#pragma once

#include <string>
#include <string_view>

#include "launch/samples/run_samples.hpp"

namespace muster {

/// Returns them in the text format of Prometheus, version 0.0.4, which node_exporter's textfile collector reads
/// (https://prometheus.io/docs/instrumenting/exposition_formats/). Names begin with muster_; units are seconds, bytes, watts, hertz, degrees Celsius and
/// ratios. Each has the labels job_id (job is the name of a label of Prometheus itself), run, user and host; those of a rank also rank, those of a GPU also gpu. Absent values are left out. Pure.
std::string metrics_text(run_samples const& of, std::string_view user, std::string_view run);

}  // namespace muster
