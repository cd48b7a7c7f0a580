// The metrics of a run: the numbers that a program prints about itself.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// A number that one rank printed once, or again and again (each epoch).
struct metric_series {
    std::string name, unit;
    int rank = -1;               ///< the one that printed it; -1: not known, as in a file
    std::vector<double> values;  ///< in the order of printing, at least one
    bool operator==(metric_series const&) const = default;
};

/// A metric that is found in the program's usual output.
struct metric_pattern {
    std::string name, unit;
    std::string regex;  ///< ECMAScript; the first group is the number, or the whole match without a group
    bool operator==(metric_pattern const&) const = default;
};

/// Reads "NAME=REGEX" or "NAME:UNIT=REGEX"; pattern_text is its inverse. Throws parse_error (errc::usage) with a caret.
metric_pattern parse_metric_pattern(std::string const& text);
std::string pattern_text(metric_pattern const& pattern);

/// Reads output as it arrives. A line may begin with "[host:rank] ", as `muster run -l` writes it. Metrics are
///   muster-metric: NAME VALUE [UNIT]
/// anywhere in a line, and what the patterns match in its first 4,096 bytes. NAME consists of letters, digits and "_.-/".
class metric_reader {
  public:
    /// Throws errc::usage for an invalid regular expression.
    explicit metric_reader(std::vector<metric_pattern> const& patterns);

    /// Takes the next piece of output, divided anywhere.
    void add(std::string_view text);
    /// Ends the output: the rest is a line.
    void finish();

    /// Returns them in the order of their first values; a series for each rank.
    std::vector<metric_series> const& metrics() const noexcept { return metrics_; }
    /// Returns the first malformed metric line and the reason; "" if there was no such line.
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
    bool cut_ = false;  ///< the line is longer than the part that is kept
    std::vector<metric_series> metrics_;
    std::string fault_;
};

/// Returns the metrics in a file of JSON lines: {"metric": NAME, "value": V, "unit": U}, or any object, whose numbers are
/// metrics. Leaves out a last line that is not complete. Throws errc::invalid_data naming `origin` and the line.
std::vector<metric_series> read_metric_lines(std::string_view text, std::string const& origin);

/// The choice of the value of a metric that counts for a run.
struct metric_choice {
    std::string name;
    std::string which = "last";   ///< of one rank's values: last, first, mean, median, min, max or sum
    std::string across = "rank";  ///< rank: the lowest rank that printed it; or mean, median, min, max or sum over the ranks
    bool operator==(metric_choice const&) const = default;
};

/// Reads "NAME=WHICH" or "NAME=WHICH,ACROSS". Throws parse_error (errc::usage) with a caret and the nearest known word.
metric_choice parse_metric_choice(std::string const& text);

/// Returns a run's value of one metric, from the series of all ranks that printed it (at least one). Pure.
double chosen_value(std::vector<metric_series const*> const& told, metric_choice const& choice);

/// Returns whether it is a valid name of a metric.
bool is_metric_name(std::string_view name) noexcept;

}  // namespace muster
