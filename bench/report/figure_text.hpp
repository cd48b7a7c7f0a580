// Text of a report whose figures are known: writes each as HTML that names the value in the report's JSON, or plain.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster {

/// The report's JSON keeps the order in which it is written.
using report_json = nlohmann::ordered_json;
using json_place = report_json::json_pointer;

/// The rounding of a value that is shown.
struct shown_rounding {
    int digits = 0;    ///< behind the point
    double scale = 1;  ///< 100 for parts that are shown as percent
    bool operator==(shown_rounding const&) const = default;
};
/// Three significant digits, as format_value has them.
shown_rounding three_digits(double value);
std::string show_value(double value, shown_rounding how);

/// "<", ">", "&" and quotes as HTML has them.
std::string html_text(std::string_view text);

enum class markup { html, plain };

/// A number of the report, and where its JSON has it.
struct known_figure {
    json_place at;
    double value;
};
using named_values = std::vector<std::pair<std::string, double>>;

/// A sentence, its figures by their names in "values", and the words of it whose digits are no figures.
struct told_sentence {
    std::string text;
    named_values values = {};
    std::vector<std::string> names = {};
};

/// Collects a text. In HTML a figure is <span data-value="POINTER" data-digits="D" [data-scale="S"]>…</span>, so that whoever reads the page
/// can look it up; words whose digits are no figures are <span data-name>…</span>.
class figure_text {
  public:
    explicit figure_text(markup how) : how_(how) {}

    figure_text& words(std::string_view text);
    /// A word from outside: a host, a metric, a list of cores.
    figure_text& name(std::string_view text);
    /// "-" for no value.
    figure_text& figure(std::optional<double> value, json_place const& at, shown_rounding how);
    figure_text& figure(std::optional<double> value, json_place const& at);  ///< three digits
    figure_text& count(double value, json_place const& at) { return figure(value, at, {}); }
    figure_text& percent(double value, json_place const& at, int digits = 0) {
        return figure(value, at, {digits, 100}).words("%");
    }
    /// The sentence of the object at that place. Its figures are looked for among `more` and the sentence's values, in this order.
    figure_text& sentence(told_sentence const& told, json_place const& at, std::vector<known_figure> more = {});

    std::string const& text() const noexcept { return text_; }

  private:
    bool take_name(std::string_view rest, std::vector<std::string> const& names, std::size_t& length);
    std::size_t take_figure(std::string_view rest, std::vector<known_figure> const& known);

    markup how_;
    std::string text_;
};

}  // namespace muster
