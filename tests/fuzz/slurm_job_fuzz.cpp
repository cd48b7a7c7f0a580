// links: muster::launch
// iterations: 20000
// Any bytes as scontrol's answers and as a list of generic resources: what they say, or an error with a caret.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    try {
        auto const job = muster::parse_scontrol_job(text, "21");
        if (!job.found && !job.gpus.empty()) __builtin_trap();
        for (auto const& [name, gpus] : job.gpus)
            if (name.empty() || gpus < 0) __builtin_trap();
    } catch (muster::error const& e) {
        if (e.code() != muster::errc::parse) __builtin_trap();
    }
    for (bool const only_gpus : {false, true}) try {
            if (muster::count_gres_gpus(text, "fuzz", only_gpus) < 0) __builtin_trap();
        } catch (muster::parse_error const& e) {
            if (std::string_view(e.what()).find('^') == std::string_view::npos) __builtin_trap();
        }
    muster::knows_gpus(text);
    return 0;
}
