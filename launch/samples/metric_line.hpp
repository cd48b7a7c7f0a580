// Finds lines "muster-metric: NAME VALUE [UNIT]", and "muster-checkpoint: STEP", in what a rank prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

inline constexpr std::string_view metric_mark = "muster-metric:";
inline constexpr std::string_view checkpoint_mark = "muster-checkpoint:";

/// A value of a metric, as it was printed.
struct metric_value {
    std::string name, value, unit;
    bool operator==(metric_value const&) const = default;
};

/// Reads a line, without its end; nothing if it has no mark or something else behind it. Pure.
std::optional<metric_value> parse_metric_line(std::string_view line);

/// Reads what is behind the mark of a checkpoint, up to the line's end; nothing if that is no step. Pure.
std::optional<std::int64_t> parse_checkpoint_step(std::string_view behind);

/// Keeps the last line of a metric of a stream, which comes in pieces of any size.
class last_metric {
  public:
    void take(std::string_view bytes);
    /// Returns "loss 0.25", without the mark, with the unit if there is one; empty: there was none.
    std::string const& text() const noexcept { return text_; }

  private:
    void finish();

    static constexpr std::size_t longest = 80;  ///< what is longer is left out: all ranks' are in one file
    bool within_ = false;                       ///< the last bytes are behind a mark in an unfinished line
    std::string line_;  ///< what is behind that mark so far; else the last bytes, which may be the beginning of a mark
    std::string text_;
};

}  // namespace muster
