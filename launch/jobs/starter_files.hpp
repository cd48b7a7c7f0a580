// The files that muster init writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// muster.toml with a table [job]. Pure.
std::string starter_job_file(std::string const& site);

/// train.py, the script of the README.
std::string_view starter_script() noexcept;

/// resume.py, which trains over several jobs.
std::string_view resuming_script() noexcept;

/// The options of `muster script` that ask for the same job. Pure.
std::vector<std::string> starter_script_words(std::string const& site);

}  // namespace muster
