#include "bench/report/plots/label_layout.hpp"

#include <algorithm>
#include <array>

namespace muster {

double text_width(std::string_view text, double font_size) noexcept {
    constexpr std::string_view wide = "%mwMW@";
    double ems = 0;
    for (char const c : text) ems += wide.find(c) == std::string_view::npos ? 0.66 : 1.0;
    return ems * font_size;
}

bool label_layout::on_a_line(plot_box const& box) const noexcept {
    constexpr int steps = 256;
    return std::any_of(lines_.begin(), lines_.end(), [&](line const& l) {
        for (int i = 0; i <= steps; ++i) {
            double const t = static_cast<double>(i) / steps, x = l.x0 + t * (l.x1 - l.x0), y = l.y0 + t * (l.y1 - l.y0);
            if (x > box.left && x < box.right && y > box.top && y < box.bottom) return true;
        }
        return false;
    });
}

std::optional<label_place> label_layout::place(double x, double y, std::string_view text, double font_size) {
    double const half = text_width(text, font_size) / 2, tall = 0.62 * font_size, aside = 8 + half, over = 6 + tall;
    std::array<std::pair<double, double>, 8> const offsets{
        {{aside, 0}, {-aside, 0}, {0, -over}, {0, over}, {aside, -over}, {-aside, -over}, {aside, over}, {-aside, over}}};
    std::optional<label_place> found;
    for (auto const& [dx, dy] : offsets) {
        label_place const tried{x + dx, y + dy, {x + dx - half, y + dy - tall, x + dx + half, y + dy + tall}};
        bool const free = tried.box.within(frame_) &&
                          std::none_of(taken_.begin(), taken_.end(), [&](plot_box const& b) { return b.overlaps(tried.box); });
        if (!free) continue;
        if (!found) found = tried;
        if (on_a_line(tried.box)) continue;
        found = tried;
        break;
    }
    if (found) taken_.push_back(found->box);
    return found;
}

}  // namespace muster
