// Makes the files that muster init writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Returns a job file for two GPUs, or two ranks. Pure.
std::string starter_job_file(std::string const& site, bool with_gpus);

/// Returns train.py, the README's script.
std::string_view starter_script() noexcept;

/// Returns resume.py, which trains over several jobs.
std::string_view resuming_script() noexcept;

/// Returns the options of `muster script` that ask for the same job. Pure.
std::vector<std::string> starter_script_words(std::string const& site, bool with_gpus);

}  // namespace muster
