// Options of a command: the rows of their table, and the values that a command line gives to them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// One option. Every command has --help (-h) besides its rows.
struct option_row {
    std::string_view name;      ///< "output": --output
    char letter = 0;            ///< 'o': -o
    std::string_view argument;  ///< what its value is called, "FILE"; empty: a flag
    std::string_view help;      ///< one line
    std::string_view fallback;  ///< the value where none is given; help shows it in brackets; empty: none
    bool many = false;          ///< may be given several times: see given_options::all
    std::string_view choices;   ///< "auto idx csv": values that a shell completes; empty: files
};

/// Holds what reading a command line needs to know of an option.
struct option_shape {
    std::string name;
    char letter = 0;
    bool takes_value = false;
};

/// A command line, divided into options and other words. Both keep their order.
struct option_words {
    std::vector<std::pair<std::string, std::string>> options;  ///< name and value; a flag's value is empty
    std::vector<std::string> words;
    std::size_t before_dashes = 0;       ///< of the words stand before "--"; all, without one
    std::optional<std::string> unknown;  ///< the first option that is in no shape; the others are not read then
};

/// Reads "--name VALUE", "--name=VALUE", "-n VALUE", "-nVALUE", flags ("--name", "-a", "-ab") and other words; behind "--" all
/// are other words. A word that is one of `known` is never taken for a value. Throws errc::usage for a missing value and for a
/// value of a flag.
option_words read_option_words(std::span<option_shape const> known, std::vector<std::string> const& args);

/// The values of one command's options. All reading functions throw errc::usage, naming the command or the option and what is
/// expected, and take names that are in the table only.
class given_options {
  public:
    /// `command` is how messages name it, "muster-stage convert"; `most_words` is how many words may stand next to the options.
    /// `takes_program`: the words behind "--" are a program's, and are not among these. Throws errc::usage for an unknown option
    /// (with the nearest known one), one that is given twice and for too many words.
    given_options(std::string command, std::span<option_row const> rows, std::size_t most_words,
                  std::vector<std::string> const& args, bool takes_program = false);

    bool has(std::string_view name) const;            ///< whether it is on the command line
    std::string text(std::string_view name) const;    ///< its value, or its fallback
    std::string needed(std::string_view name) const;  ///< throws if there is neither value nor fallback
    std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;  ///< throws as `needed`
    double real(std::string_view name) const;                                                  ///< throws as `needed`
    std::vector<std::string> all(std::string_view name) const;  ///< every value given, in order; the fallback is none of them
    std::vector<std::string> const& words() const noexcept { return words_; }
    std::vector<std::string> const& program() const noexcept { return program_; }  ///< behind "--"
    std::string const& command() const noexcept { return command_; }

  private:
    option_row const* find(std::string_view name) const noexcept;

    std::string command_;
    std::span<option_row const> rows_;
    std::vector<std::pair<std::string, std::string>> given_;
    std::vector<std::string> words_, program_;
};

/// "-o, --output FILE".
std::string synopsis_of(option_row const& row);

/// A line of help for each row: its synopsis, its text and its fallback in brackets.
std::string options_help(std::span<option_row const> rows);

}  // namespace muster
