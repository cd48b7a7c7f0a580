// links: muster::jobs
// iterations: 20000
// Any bytes as what flux jobs and flux job eventlog print: jobs with a number each, a word on the end, and no crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launch/jobs/queue/flux_jobs.hpp"
#include "launch/jobs/queue/queued_job.hpp"
#include "launch/watch/job_end.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    for (auto const& job : muster::parse_flux_jobs(text)) {
        if (job.id.empty() || muster::explain_flux_wait(job).empty()) __builtin_trap();
        if (job.status && *job.status < 0) __builtin_trap();
    }
    muster::parse_flux_events(text);
    muster::parse_flux_hosts(text);
    if (auto const number = muster::parse_job_number(text); number && !muster::is_job_number(*number)) __builtin_trap();
    return 0;
}
