// The files that muster init writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A job file for two GPUs, or two ranks. Pure.
std::string starter_job_file(std::string const& site, bool with_gpus);

/// train.py, the script of the README.
std::string_view starter_script() noexcept;

/// resume.py, which trains over several jobs.
std::string_view resuming_script() noexcept;

/// The options of `muster script` that ask for the same job. Pure.
std::vector<std::string> starter_script_words(std::string const& site, bool with_gpus);

}  // namespace muster
