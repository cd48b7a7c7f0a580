// The commands of a program: one table for dispatch, help and version, whatever the program.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/command/help_page.hpp"

namespace muster {

/// One command, as help shows it. Rows are static; a set keeps pointers to them.
struct command_row {
    std::string_view name;
    std::string_view summary;             ///< one line
    std::string_view synopsis;            ///< behind the name: "FILE [options]"
    std::string_view examples;            ///< lines, indented by two, the commonest first
    std::span<option_row const> options;  ///< in the order of display
    std::string_view description;         ///< sentences that help shows above the examples
    std::string_view closing;             ///< lines below the options
    std::string_view arguments;           ///< the words that may come first: "show path check"; empty: none, or any
    std::string_view manual;              ///< more paragraphs for the man page, an empty line between two
    std::size_t most_words = 0;           ///< words that may stand next to the options
    bool hidden = false;                  ///< not shown: the program itself starts it
    bool takes_program = false;           ///< the words behind "--" are a program's
    bool takes_jobs = false;              ///< its words are numbers of jobs
    bool is_program = false;              ///< a separate program, PROGRAM-NAME: the row has a summary alone
    std::string_view part;                ///< of muster: the part that a build may leave out; empty: of the core
};

/// A program, as its help shows it.
struct program_text {
    std::string_view name;
    std::string_view summary;              ///< "datasets for training"
    std::string_view example;              ///< the commonest command line
    std::string_view closing;              ///< lines below the commands; empty: none
    std::string (*version)();              ///< gives what --version prints; none: the name and the version of the build
    std::size_t width = usual_help_width;  ///< of help
};

/// Returns what `PROGRAM COMMAND --help` prints, in lines of any width: usage, examples and `options`, a line for each.
std::string command_help(std::string_view program, command_row const& row, std::string_view options);

/// A program's commands with the functions that run them. Not thread safe while commands are added.
class command_set {
  public:
    using with_options = std::function<int(given_options const& given)>;
    using with_words = std::function<int(std::vector<std::string> const& args)>;

    /// `prints` false: help and version are not printed, as on all ranks but one.
    explicit command_set(program_text program, bool prints = true) : program_(std::move(program)), prints_(prints) {}
    command_set(command_set const&) = delete;
    command_set& operator=(command_set const&) = delete;

    /// A command whose options are read by its row; --help is answered here.
    void add(command_row const& row, with_options run);
    /// A command that reads its words itself.
    void add_unread(command_row const& row, with_words run);

    /// Runs the command that `words` names first and returns its exit code. --help, -h and help print the commands (help COMMAND:
    /// that command's help), --version, -v and version the version; no word at all prints the commands on standard error and
    /// returns 2. Throws errc::usage for an unknown command, with the nearest known one.
    int run(std::vector<std::string> const& words) const;

    bool has(std::string_view name) const noexcept;
    program_text const& program() const noexcept { return program_; }
    /// Returns the commands in the order in which they were added.
    std::vector<command_row const*> rows() const;
    /// Returns what `PROGRAM --help` prints, in lines of any width.
    std::string overview() const;
    std::string version() const;

  private:
    struct entry {
        command_row const* row;
        with_words run;
    };
    entry const* find(std::string_view name) const noexcept;
    void print(std::string_view text) const;

    program_text program_;
    bool prints_;
    std::vector<entry> entries_;
};

/// Writes what standard output still holds. Standard output is data: where some of it is lost although `code` is 0, this says so
/// on standard error, and returns the exit code of errc::io; else `code`.
int finish_output(std::string_view program, int code) noexcept;

/// Prints "PROGRAM: error: TEXT" on standard error.
void print_error(std::string_view program, std::string_view text);

/// Runs `body`, which returns an exit code. An exception is printed as "PROGRAM: error: MESSAGE" on standard error and becomes
/// its exit code.
int run_main(std::string_view program, std::function<int()> const& body) noexcept;

// The words that a shell offers on a program's command line: commands and options, for the scripts of `muster completion`.

/// Returns the names of the commands that are not hidden or, with a command, its options: "--output". The list is empty for a command that is
/// not there. Pure.
std::vector<std::string> completion_words(command_set const& commands, std::string const& command);

/// The values of a command's option, "--type" or "-d", that its row lists; empty: any, or there is no such option. Pure.
std::vector<std::string> completion_values(command_set const& commands, std::string const& command, std::string_view option);

/// Adds the hidden command "completion [COMMAND [OPTION]]", which prints completion_words() or completion_values(), one on a line.
void add_completion_command(command_set& commands);

}  // namespace muster
