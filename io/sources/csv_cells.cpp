#include "io/sources/csv_cells.hpp"

#include <charconv>
#include <cstring>
#include <string>
#include <system_error>
#include <type_traits>

namespace muster {

namespace {

/// A number too small for its type is 0, as NumPy takes it; one too large is invalid.
template <typename Number>
std::optional<Number> real_of(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    Number value{};
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end != text.data() + text.size()) return std::nullopt;
    if (code == std::errc()) return value;
    if (code != std::errc::result_out_of_range) return std::nullopt;
    bool const negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    std::size_t const exponent = text.find_first_of("eE");
    bool const tiny = exponent != std::string_view::npos ? text.substr(exponent + 1).starts_with('-')
                                                         : text.find_first_not_of('0') == text.find('.');
    if (!tiny) return std::nullopt;
    return negative ? -Number{0} : Number{0};
}

template <typename Number>
bool store(std::string_view text, std::uint8_t* to) {
    Number value{};
    if constexpr (std::is_floating_point_v<Number>) {
        auto const found = real_of<Number>(text);
        if (!found) return false;
        value = *found;
    } else {
        if (text.starts_with('+')) text.remove_prefix(1);
        auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
        bool whole = code == std::errc() && !text.empty();
        for (char const* rest = end; whole && rest != text.data() + text.size(); ++rest)  // "255.0" is a whole number too
            whole = *rest == '0' || (rest == end && *rest == '.');
        if (!whole || (end != text.data() + text.size() && *end != '.')) return false;
    }
    std::memcpy(to, &value, sizeof value);
    return true;
}

}  // namespace

bool store_as(element_type type, std::string_view text, std::uint8_t* to) {
    return with_type(type, [&](auto number) { return store<decltype(number)>(text, to); });
}

std::optional<double> cell_number(std::string_view text) {
    return real_of<double>(text);
}

bool is_number(std::string_view text) {
    return cell_number(text).has_value();
}

bool has_decimal_comma(std::string_view text) {
    std::string with_point(text);
    std::size_t const comma = with_point.find(',');
    if (comma == std::string::npos) return false;
    with_point[comma] = '.';
    return is_number(with_point);
}

}  // namespace muster
