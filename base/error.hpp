// Errors of all of muster: one family of exceptions. A message says what failed, the values, why, and one thing to do.
#pragma once

#include <cstddef>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace muster {

// Carets: a place in a text, shown under its line.

/// Says where a byte offset lies in a text; both from 1, the column in bytes.
struct text_position {
    std::size_t line = 1;
    std::size_t column = 1;
    bool operator==(text_position const&) const = default;
};
text_position locate(std::string_view text, std::size_t offset) noexcept;

/// "ORIGIN:LINE:COLUMN: MESSAGE", the line, and a caret under the fault; "ORIGIN: MESSAGE" where `text` is one line and no file
/// (an option, a variable). Unprintable bytes are shown as '?', long lines are cut around the caret, so that any bytes can be
/// shown on a terminal.
std::string render_caret(std::string_view origin, std::string_view text, std::size_t offset, std::string_view message,
                         bool is_file = false);

/// Names the kinds of failure that an error can be. `exit_code` gives the process exit code that it leads to.
enum class errc {
    usage,         ///< a wrong option or argument on a command line
    config,        ///< a wrong line in a settings, site or host file
    parse,         ///< text from elsewhere (an environment variable, a command's output) that does not parse
    not_found,     ///< a file, program, host or device that is not there
    unavailable,   ///< something this machine or this build cannot do
    invalid_data,  ///< a file whose contents are truncated, damaged or not what they say
    system,        ///< a failed system call
    io,            ///< a failed read or write
    placement,     ///< ranks that do not fit the allocation or the node
    timeout,       ///< a deadline that passed
    peer_failed,   ///< another rank died or disagreed
    singleton,     ///< a rank that came up alone while its world is larger
    library,       ///< MPI, PMIx, HDF5, … returned an error
    internal,      ///< a broken assumption within muster
};

/// The name as printed, for example "placement".
std::string_view to_string(errc code) noexcept;

/// Exit code of a muster program that ends with this error: 2 usage, 124 timeout, 125 otherwise.
int exit_code(errc code) noexcept;

/// Base of every exception muster throws. `what()` is complete and fit to print.
class error : public std::runtime_error {
  public:
    error(errc code, std::string const& message) : std::runtime_error(message), code_(code) {}
    errc code() const noexcept { return code_; }

  private:
    errc code_;
};

/// Text that does not parse: `what()` shows where it came from, the line, and a caret under the fault; line and column are in it
/// where the text has several lines or the code is errc::config, which is for files.
class parse_error : public error {
  public:
    /// `text` is the whole text; `offset` (bytes, clamped to its size) the place of the fault; `origin` a file name,
    /// the name of a variable or a command.
    parse_error(std::string_view origin, std::string_view text, std::size_t offset, std::string_view message,
                errc code = errc::parse);
    std::size_t line() const noexcept { return line_; }      ///< from 1
    std::size_t column() const noexcept { return column_; }  ///< from 1, in bytes

  private:
    parse_error(errc code, std::string const& rendered, std::size_t line, std::size_t column)
        : error(code, rendered), line_(line), column_(column) {}
    std::size_t line_;
    std::size_t column_;
};

/// An error of a C library, with the call's name and the library's own code.
class library_error : public error {
  public:
    library_error(std::string_view library, std::string_view call, int native_code, std::string_view text);
    std::string const& call() const noexcept { return call_; }
    int native_code() const noexcept { return native_code_; }

  private:
    std::string call_;
    int native_code_;
};

/// A failed system call: `what()` is "CALL OBJECT: strerror (errno N)[; hint]". Reads errno when `code` is 0.
[[noreturn]] void throw_system(std::string_view call, std::string_view object, int code = 0, std::string_view hint = {});

/// Throws errc::internal, with the place, unless `condition` holds. For assumptions of our own, never for input.
void expect(bool condition, std::string_view what, std::source_location where = std::source_location::current());

// Words of a collective's error by which the launcher knows, from a rank's standard error, that another rank is to blame.

inline constexpr std::string_view ended_exchange_words = "ended the exchange and will not take part";
inline constexpr std::string_view lost_rank_words = "cannot finish";

}  // namespace muster
