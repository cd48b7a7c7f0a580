// Roff, the language of man pages, written from plain text and from Markdown.
#pragma once

#include <string>
#include <string_view>

namespace muster {

/// `text` so that troff shows just that: no character of it commands anything, none is outside ASCII. A hyphen is a minus, as it
/// is in options.
std::string roff_quote(std::string_view text);

/// `text` in bold letters.
std::string roff_bold(std::string_view text);

/// Paragraphs of plain text, which an empty line divides.
std::string roff_paragraphs(std::string_view text);

/// Markdown as roff, below a heading .SH. Of Markdown it knows what docs/environment.md holds: paragraphs, lists ("- "), tables,
/// fenced code, headings (each becomes .SS), comments in lines of their own (left out), `code`, **bold**, *italic* and links
/// (their text). A row of a table becomes a paragraph with its first cell as tag; cells behind the second are named by their
/// column. Pure.
std::string roff_of_markdown(std::string_view markdown);

}  // namespace muster
