// Sections of man pages, taken from docs/environment.md, which every program holds.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// The section "## TITLE" of a Markdown document as a page needs it: its text, and its subsections ("### …") without a mark or
/// with a mark "<!-- page: A, B -->" below the heading that names `page` ("muster run", "muster-bench"; "muster *" is all of
/// muster's commands). The heading of a subsection that is all there is is left out. Empty if there is no such section. Pure.
std::string manual_section(std::string_view document, std::string_view title, std::string_view page);

/// ENVIRONMENT, STANDARD INPUT AND OUTPUT, SIGNALS, FILES and EXIT STATUS of a page, in roff.
std::string manual_sections(std::string_view page);

}  // namespace muster
