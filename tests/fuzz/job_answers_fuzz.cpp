// links: muster::jobs
// iterations: 20000
// Any bytes as what squeue, qstat, sbatch, a record of a job and one of GPUs say: jobs that can be told of, or an error.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/jobs/job_record.hpp"
#include "launch/jobs/logs/gpu_lines.hpp"
#include "launch/jobs/logs/watch_screen.hpp"
#include "launch/jobs/queue/queued_job.hpp"

namespace {

void look_at(std::vector<muster::queued_job> const& jobs) {
    for (auto const& job : jobs) {
        int const code = muster::watch_code(job);
        if (code < 0 || code > 255) __builtin_trap();
        if (job.reason.empty() && muster::explain_wait(job).empty()) __builtin_trap();
        if (!muster::is_meant(job, job.id)) __builtin_trap();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    look_at(muster::parse_squeue(text));
    try {
        look_at(muster::parse_qstat(text));
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::parse) __builtin_trap();
    }
    auto const gpus = muster::parse_samples(text).value_or(muster::run_samples()).nodes;
    for (auto const& line : muster::gpu_lines(gpus, 0))
        for (auto const& piece : muster::fold_line(line, 79))
            if (piece.find('\n') != std::string::npos) __builtin_trap();
    std::size_t count = 0;
    for (auto const& node : gpus) count += node.gpus.size();
    if (muster::gpu_summary(gpus).size() != count || muster::gpu_overview(gpus).empty()) __builtin_trap();
    if (auto const number = muster::parse_job_number(text); number && !muster::is_job_number(*number)) __builtin_trap();
    try {
        auto const record = muster::parse_job_record(text, "record");
        if (muster::parse_job_record(muster::to_json(record), "again").id.empty() != record.id.empty()) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::config) __builtin_trap();
    }
    return 0;
}
