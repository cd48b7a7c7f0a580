// Words in scripts: quotes them for bash and checks those of directives, which have no quoting.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

/// `word` as one word of bash, on one line: like shell_quote, but a word with control characters becomes $'…', so that no line of
/// a script begins inside a word. Bash gives back the same bytes in any locale. Throws errc::usage on a NUL byte.
std::string bash_quote(std::string_view word);

/// Says what a directive's value may consist of. Directives are read by the scheduler and not by a shell, and there is no common way
/// of quoting in them; so what could end a value, a line or a directive is refused.
enum class directive_text {
    name,        ///< job, account, queue: letters, digits and _ . + - @, the first a letter, a digit or _
    resource,    ///< the same and : = , / : "home:eagle", "ncpus=4:ngpus=4"
    expression,  ///< a Slurm constraint: the same as `name` and & | ! * ( ) [ ] : = ,
    array,       ///< digits and - , : %: "0-9%2"
    job,         ///< a job's number: letters, digits and _ . [ ] -
    directive,   ///< a whole directive: options and resources divided by single blanks, the first with its dash
};

/// A fault of a value, and where in it.
struct directive_fault {
    std::size_t offset;
    std::string why;
};

/// The first fault of `value`, or nothing if it may stand in a directive.
std::optional<directive_fault> find_fault(std::string_view value, directive_text kind);

/// `value` itself. Throws parse_error (errc::usage) that names `what` and shows the first character that is not allowed; also if
/// the value is empty or longer than 256 bytes.
std::string directive_value(std::string_view what, std::string_view value, directive_text kind);

/// Returns whether a shell variable may be named so.
bool is_variable_name(std::string_view name) noexcept;

/// `name` itself if a shell variable may be named so; else parse_error (errc::usage).
std::string variable_name(std::string_view name);

}  // namespace muster
