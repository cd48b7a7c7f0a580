// The metrics of a run: reads the numbers that a program prints about itself.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A number that one rank told once, or again and again (each epoch).
struct metric_series {
    std::string name, unit;
    int rank = -1;               ///< that told it; -1: not known, as in a file
    std::vector<double> values;  ///< in the order of telling, at least one
    bool operator==(metric_series const&) const = default;
};

/// A metric that is found in what the program prints anyway.
struct metric_pattern {
    std::string name, unit;
    std::string regex;  ///< ECMAScript; the first group is the number, or all of it where there is no group
    bool operator==(metric_pattern const&) const = default;
};

/// "NAME=REGEX" or "NAME:UNIT=REGEX"; pattern_text is its inverse. Throws parse_error (errc::usage) with a caret.
metric_pattern parse_metric_pattern(std::string const& text);
std::string pattern_text(metric_pattern const& pattern);

/// Reads output as it comes. A line may begin with "[host:rank] ", as `muster run -l` writes it. Metrics are
///   muster-metric: NAME VALUE [UNIT]
/// anywhere in a line, and what the patterns match in the first 4,096 bytes of a line. NAME is of letters, digits and "_.-/".
class metric_reader {
  public:
    /// Throws errc::usage for an invalid regular expression.
    explicit metric_reader(std::vector<metric_pattern> const& patterns);

    /// The next piece of output, divided anywhere.
    void add(std::string_view text);
    /// The end of the output: what is left is a line.
    void finish();

    /// In the order in which they were first told; a series for each rank.
    std::vector<metric_series> const& metrics() const noexcept { return metrics_; }
    /// The first malformed metric line and the reason; "" if there was no such line.
    std::string const& fault() const noexcept { return fault_; }

  private:
    void read_line(std::string_view line);
    void read_part(std::string_view part, int rank);
    void read_told(std::string_view told, int rank);

    struct compiled {
        metric_pattern pattern;
        std::regex regex;
    };
    std::vector<compiled> patterns_;
    std::string line_;
    bool cut_ = false;  ///< the line is longer than what is kept of it
    std::vector<metric_series> metrics_;
    std::string fault_;
};

/// What a file of JSON lines tells, in the same way: {"metric": NAME, "value": V, "unit": U}, or any object, whose numbers are
/// metrics. A last line that is not whole is left out. Throws errc::invalid_data naming `origin` and the line.
std::vector<metric_series> read_metric_lines(std::string_view text, std::string const& origin);

/// Which of a metric's values counts for a run.
struct metric_choice {
    std::string name;
    std::string which = "last";   ///< of one rank's values: last, first, mean, median, min, max or sum
    std::string across = "rank";  ///< rank: the lowest rank that told it; or mean, median, min, max or sum over the ranks
    bool operator==(metric_choice const&) const = default;
};

/// "NAME=WHICH" or "NAME=WHICH,ACROSS". Throws parse_error (errc::usage) with a caret and the nearest known word.
metric_choice parse_metric_choice(std::string const& text);

/// A run's value of one metric, from the series of all ranks that told it (at least one). Pure.
double chosen_value(std::vector<metric_series const*> const& told, metric_choice const& choice);

/// The names of metrics as they may be written.
bool is_metric_name(std::string_view name) noexcept;

}  // namespace muster
