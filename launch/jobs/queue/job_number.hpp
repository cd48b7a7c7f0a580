// The number of a job as schedulers print and users write it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// What sbatch --parsable ("12", "12;cluster"), qsub ("12.server") or flux batch ("ƒ6tw1Mjm") printed: the job's number, with PBS its
/// server, Flux's with an ASCII f. Lines before the last one
/// are a site's own words. Nothing where the last line is no number. Pure.
std::optional<std::string> parse_job_number(std::string_view printed);

/// Whether `word` can name a job: "12", "12_3", "12.pbs", "12[3].pbs", "f6tw1Mjm". Pure.
bool is_job_number(std::string_view word) noexcept;

}  // namespace muster
