// Job scripts: renders a request by a mustache template.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "jobscripts/script_request.hpp"

namespace muster {

/// The files jobscripts/templates/*.mustache, as they were when the program was built.
std::span<embedded_text const> script_templates() noexcept;

/// The script for `request`: bash, ended by a newline, with the scheduler's directives first. It becomes `muster run -n RANKS --
/// COMMAND`: every word of the command arrives byte for byte, a signal to the script is one to muster, and muster's exit code is
/// the job's. Pure; thread safe. Throws parse_error or error, errc::usage, for values that no script may hold (see quote.hpp),
/// counts below one, an empty command and a walltime outside (0, 366 d].
std::string render(script_request const& request);

/// The same from a template of the caller's (mustache; see jobscripts/templates/ for the names; {{name}} is quoted for bash,
/// {{{name}}} is not; {{> body}} is what runs muster). `origin` names it in errors. Throws errc::config if it is no valid
/// template.
std::string render(script_request const& request, std::string_view template_text, std::string_view origin);

}  // namespace muster
