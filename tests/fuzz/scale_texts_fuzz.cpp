// links: muster::bench
// iterations: 20000
// Any bytes as the output of a program, as its file of JSON lines, as an expectation, a metric's choice and an argument with braces: values, or an
// error of the user's.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "bench/study/expectation.hpp"
#include "bench/study/metric_reader.hpp"
#include "bench/study/placeholders.hpp"
#include "bench/tools/crowd.hpp"

namespace {

template <typename function>
void only_errors_of(muster::errc code, function run) {
    try {
        run();
    } catch (muster::error const& e) {
        if (e.code() != code) __builtin_trap();
    }
}

/// In pieces or as a whole, the metrics are the same.
void read_metrics(std::string_view text) {
    static std::vector<muster::metric_pattern> const patterns{{"loss", "", "loss=([0-9.]+)"}, {"whole", "x", "[0-9]+"}};
    muster::metric_reader whole(patterns), pieces(patterns);
    whole.add(text);
    whole.finish();
    for (std::size_t at = 0; at < text.size(); at += 7) pieces.add(text.substr(at, 7));
    pieces.finish();
    if (whole.metrics() != pieces.metrics() || whole.fault() != pieces.fault()) __builtin_trap();
    for (auto const& series : whole.metrics())
        if (series.values.empty() ||
            !std::all_of(series.values.begin(), series.values.end(), [](double v) { return std::isfinite(v); }))
            __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    read_metrics(text);
    muster::read_process_work(text);
    only_errors_of(muster::errc::invalid_data, [&] { muster::read_metric_lines(text, "metrics.jsonl"); });
    only_errors_of(muster::errc::usage, [&] {
        auto const wanted = muster::parse_expectation(text);
        if (!std::isfinite(wanted.value) || !muster::is_metric_name(wanted.metric)) __builtin_trap();
    });
    only_errors_of(muster::errc::usage, [&] { muster::parse_metric_choice(text); });
    only_errors_of(muster::errc::usage, [&] {
        auto const filled = muster::fill_placeholders(text, {4, 2, 1, 32});
        if (text.find('{') == std::string::npos && filled != text) __builtin_trap();
    });
    return 0;
}
