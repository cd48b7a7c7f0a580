// links: muster::launch
// iterations: 5000
// Any bytes as a job file: a job with settings that can be used, or an error with its place.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "launch/settings/settings_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    for (bool const required : {false, true}) try {
            auto const job = muster::parse_job_file(text, "job.toml", required);
            if (!job) continue;
            for (auto const& setting : job->settings) {
                auto const* row = muster::find_configurable(setting.name);
                if (row == nullptr) __builtin_trap();
                for (auto const& entry : setting.entries)
                    if (muster::fault_of(*row, entry)) __builtin_trap();
            }
            if (!job->command.empty() && job->command.front().empty()) __builtin_trap();
        } catch (muster::error const& e) {
            if (e.code() != muster::errc::config) __builtin_trap();
            if (std::string_view(e.what()).find("job.toml") == std::string_view::npos) __builtin_trap();
        }
    return 0;
}
