// The files that muster init writes.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// muster.toml with a table [job]. Pure.
std::string starter_job_file(std::string const& site);

/// train.py, the script of the README.
std::string_view starter_script() noexcept;

}  // namespace muster
