// Places of labels in a plot: puts each next to its point, where it covers nothing.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace muster {

/// Of a plot, in its own units; y grows downwards.
struct plot_box {
    double left = 0, top = 0, right = 0, bottom = 0;
    bool operator==(plot_box const&) const = default;
    bool overlaps(plot_box const& other) const noexcept {
        return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
    bool within(plot_box const& other) const noexcept {
        return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
    }
};

struct label_place {
    double x = 0, y = 0;  ///< of the middle of the text
    plot_box box;
};

/// No narrower than the text is drawn in the usual sans-serif typefaces.
double text_width(std::string_view text, double font_size) noexcept;

/// What is taken by points, whiskers and labels, and the lines that labels avoid where they can.
class label_layout {
  public:
    explicit label_layout(plot_box frame) : frame_(frame) {}

    void take(plot_box const& box) { taken_.push_back(box); }
    void add_line(double x0, double y0, double x1, double y1) { lines_.push_back({x0, y0, x1, y1}); }

    /// A place that touches nothing, right, left, above or below the point; nothing where there is none. It is taken then.
    std::optional<label_place> place(double x, double y, std::string_view text, double font_size);

  private:
    struct line {
        double x0, y0, x1, y1;
    };
    bool on_a_line(plot_box const& box) const noexcept;
    plot_box frame_;
    std::vector<plot_box> taken_;
    std::vector<line> lines_;
};

}  // namespace muster
