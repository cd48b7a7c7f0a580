#include "bench/tools/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <limits>

#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

int count_of(given_options const& given, std::string_view name, int least) {
    return static_cast<int>(given.integer(name, least, std::numeric_limits<int>::max()));
}

std::vector<int> parse_list(std::string const& text, std::string const& origin, int low, int high) {
    std::vector<int> out;
    std::size_t offset = 0;
    for (auto const piece : split(text, ',')) {
        auto const number = parse_integer(trim(piece));
        if (!number || *number < low || *number > high)
            throw parse_error(origin, text, offset,
                              fmt::format("expected whole numbers from {} to {}, separated by commas", low, high), errc::usage);
        out.push_back(static_cast<int>(*number));
        offset += piece.size() + 1;
    }
    return out;
}

double parse_share(std::string const& text, std::string const& origin, double most) {
    bool const percent = text.ends_with('%');
    auto const number = parse_real(percent ? std::string_view(text).substr(0, text.size() - 1) : text);
    double const share = number.value_or(-1) / (percent ? 100 : 1);
    if (!(share >= 0 && share <= most))
        throw parse_error(origin, text, 0, fmt::format("expected a share up to {:g}%, as 5% or 0.05", 100 * most), errc::usage);
    return share;
}

std::string launcher_of(given_options const& given) {
    auto const path = given.has("muster") ? given.text("muster") : (self_program().parent_path() / "muster").string();
    if (::access(path.c_str(), X_OK) != 0) throw_error(errc::not_found, "no launcher at '{}'; give --muster PATH", path);
    return path;
}

}  // namespace muster
