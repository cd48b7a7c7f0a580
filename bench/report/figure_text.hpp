// Text of a report whose figures are known: writes each as HTML that names the value in the report's JSON, or plain.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

/// The report's JSON keeps the order in which it is written.
using report_json = nlohmann::ordered_json;
using json_place = report_json::json_pointer;

/// How a value is rounded where it is shown.
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

/// Collects a text about one document. In HTML a figure is <span data-value="POINTER" data-digits="D" [data-scale="S"]>…</span>, so that
/// whoever reads the page can look it up; words whose digits are no figures are <span data-name>…</span>.
class figure_text {
  public:
    figure_text(report_json const& document, markup how) : document_(document), how_(how) {}

    figure_text& words(std::string_view text);
    /// A word from outside: a host, a metric, a list of cores.
    figure_text& name(std::string_view text);
    /// The number at that place of the document; "-" if there is none.
    figure_text& figure(json_place const& at, shown_rounding how);
    figure_text& figure(json_place const& at);  ///< three digits
    figure_text& count(json_place const& at) { return figure(at, {}); }
    figure_text& percent(json_place const& at, int digits = 0) { return figure(at, {digits, 100}).words("%"); }
    /// The member `key` of the object at that place, a sentence: its figures are looked for among the numbers of the object and of its
    /// member "values", its names in the member "names".
    figure_text& sentence(json_place const& at, std::string const& key);

    std::string const& text() const noexcept { return text_; }

  private:
    struct known_figure {
        json_place at;
        double value;
    };
    bool take_name(std::string_view rest, std::vector<std::string> const& names, std::size_t& length);
    std::size_t take_figure(std::string_view rest, std::vector<known_figure> const& known);

    report_json const& document_;
    markup how_;
    std::string text_;
};

}  // namespace muster
