// The faults of a site file: finds all of them in one reading.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// Each fault of the text, in its order, as errors show them: ORIGIN:LINE:COLUMN, what, the line and a caret. Empty: no fault.
/// What follows from a reported fault is not reported. After a fault of TOML itself nothing else can be read. Pure.
std::vector<std::string> site_faults(std::string_view text, std::string_view origin);

/// Whether a text is meant as a site file and not as a settings file: it has tables or keys that only site files have.
bool looks_like_site(std::string_view text);

}  // namespace muster
