// The numbers in a table's cells: reads them in the types of elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "io/hdf5/element_type.hpp"

namespace muster {

/// Writes the number, of `type`, to `to`. False if the whole text is no number of that type. Pure.
bool store_as(element_type type, std::string_view text, std::uint8_t* to);

/// Reads a float64: a number that is too small is 0, one that is too large is invalid. Pure.
std::optional<double> cell_number(std::string_view text);
bool is_number(std::string_view text);
/// "3,5", which with a point would be a number. Pure.
bool has_decimal_comma(std::string_view text);

}  // namespace muster
