// Functions on text: splitting, numbers, nearest names, shell quoting.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// '0' to '9', in any locale.
constexpr bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text) noexcept;
/// Takes a string that ends with the expression, and so returns no view of it.
template <std::same_as<std::string> Temporary>
std::string trim(Temporary&& text) {
    return std::string(trim(std::string_view(text)));
}

/// The pieces between `separator`s, empty ones included; views into `text`. Splitting "" gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
/// They would be views into a string that is gone, in a range-based for too: give it a name.
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split(Temporary&& text, char separator) = delete;

std::string join(std::span<std::string const> pieces, std::string_view separator);

/// "1 core", "8 cores".
std::string counted(std::int64_t count, std::string_view what);

/// Folders as PATH, LD_LIBRARY_PATH and PYTHONPATH list them: those of `lists` by colons, without empty ones, which mean the working folder there. Pure.
std::string join_folders(std::initializer_list<std::string_view> lists);

/// The whole of `text` as a decimal number, or nothing (also on overflow, a sign for the unsigned form, white space).
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;
std::optional<double> parse_real(std::string_view text) noexcept;

/// The text with \x1b, \u009b for each control character but line feed and tab, for each that turns the direction of writing, and for each byte
/// that is not UTF-8: a terminal obeys none of them. For every text of others that is printed. Pure.
std::string without_controls(std::string_view text);

/// Returns where the first byte stands that is no part of UTF-8 text; nothing if all is.
std::optional<std::size_t> not_utf8_at(std::string_view text) noexcept;

/// The candidate with the smallest edit distance to `word`, if that is near enough to be a slip of the finger.
std::optional<std::string> nearest(std::string_view word, std::span<std::string const> candidates);

/// `word` as one word of a POSIX shell: unchanged if it holds only safe characters, else in single quotes. Throws errc::usage on
/// a NUL byte, which no shell word can hold.
std::string shell_quote(std::string_view word);

/// The words, quoted and joined by blanks: a line that can be pasted into a shell.
std::string shell_join(std::span<std::string const> words);

/// The words of such a line: blanks divide, '…' is taken as it is, in "…" a backslash stands before \\, ", $ and `, elsewhere
/// before any character. Nothing is expanded. Throws parse_error (errc::usage) naming `origin` where a quote is not closed or
/// nothing follows a backslash.
std::vector<std::string> shell_split(std::string_view line, std::string_view origin);

// Files that are part of a program: rows of name and text, made by the CMake function muster_embed_text.

struct embedded_text {
    std::string_view name;  ///< the file's name without its folder
    std::string_view text;
};

/// The text of the file called `name`; it must be among `files` (else errc::internal).
std::string_view find_text(std::span<embedded_text const> files, std::string_view name);

}  // namespace muster
