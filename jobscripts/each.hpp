// Sweeps of a program's options: --each NAME=V,V gives {NAME} in the words of a job a value for each job of an array.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A parameter and its values.
struct each_parameter {
    std::string name;
    std::vector<std::string> values;

    bool operator==(each_parameter const&) const = default;
};

/// The fault of an entry of --each, and where in it.
struct each_fault {
    std::size_t offset;
    std::string why;
};
std::optional<each_fault> find_each_fault(std::string_view entry);

/// "lr=0.1,0.01"; "\," is a comma in a value. The entry has no fault. Pure.
each_parameter read_each(std::string_view entry);

/// Returns how many jobs make every combination; 0 beyond most_tasks. Pure.
std::size_t count_tasks(std::vector<each_parameter> const& each) noexcept;
inline constexpr std::size_t most_tasks = 100'000;

/// Returns what the job with this number in the array has for each parameter: the values of the last one change fastest. `index` is less than count_tasks(). Pure.
std::vector<std::string> values_of_task(std::vector<each_parameter> const& each, std::size_t index);

/// Says where "{lr}" stands in a word, braces included. What a shell would fill in ("${lr}"), and braces around anything but a name, do not count; nor does "{{lr}}",
/// which stands for the braces themselves.
struct placeholder {
    std::size_t offset, length;
    std::string name;
    bool is_escaped = false;  ///< "{{lr}}": offset and length are of the whole
};
std::vector<placeholder> find_placeholders(std::string_view word);

/// The word with this task's values. Braces of other names stay. Pure.
std::string fill_word(std::string_view word, std::vector<each_parameter> const& each, std::size_t index);

/// The word for bash, in which the script's variables stand for {NAME} and {index}. Without an array like bash_quote(). Pure.
std::string quote_task_word(std::string_view word, std::vector<each_parameter> const& each, bool is_array);

/// The lines of the script that set these variables by MUSTER_ARRAY_INDEX. Pure.
std::vector<std::string> value_lines(std::vector<each_parameter> const& each);

}  // namespace muster
