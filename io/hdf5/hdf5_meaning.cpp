#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "io/hdf5/hdf5_check.hpp"

namespace muster::hdf5 {

namespace {

/// An attribute as read: its numbers, or its text.
struct attribute_value {
    std::vector<double> numbers;
    std::string text;

    std::string words() const {
        if (numbers.empty()) return fmt::format("\"{}\"", without_controls(text));
        return numbers.size() == 1 ? fmt::format("{:g}", numbers[0]) : fmt::format("[{:g}]", fmt::join(numbers, ", "));
    }
};

/// Few numbers or a text; nothing where there is no such attribute. What is neither is "…".
std::optional<attribute_value> find_value(place const& where, dataset const& of, std::string const& name) {
    place const at = within(where, name);
    auto const found = find_attribute(at, of.get(), name);
    if (!found) return std::nullopt;
    auto const kind = H5Tget_class(found->type.get());
    constexpr std::size_t most = 16;
    if ((kind == H5T_INTEGER || kind == H5T_FLOAT) && found->count >= 1 && found->count <= most) {
        std::vector<double> numbers(found->count);
        checked(at, "H5Aread", [&] { return H5Aread(found->handle.get(), H5T_NATIVE_DOUBLE, numbers.data()); });
        return attribute_value{std::move(numbers), ""};
    }
    if (kind != H5T_STRING || found->count != 1) return attribute_value{{}, "…"};
    auto const texts = read_strings(where, of.get(), name);
    return attribute_value{{}, texts && !texts->empty() ? texts->front().substr(0, 60) : ""};
}

/// Returns whether integers have a sign; nothing for other numbers.
std::optional<bool> is_signed_integer(place const& where, dataset const& of) {
    datatype const type(checked(where, "H5Dget_type", [&] { return H5Dget_type(of.get()); }));
    if (H5Tget_class(type.get()) != H5T_INTEGER) return std::nullopt;
    return H5Tget_sign(type.get()) == H5T_SGN_2;
}

/// Returns whether with this value the numbers are others than those stored. Programs write "true", "True" and "TRUE".
bool changes_numbers(std::string_view name, attribute_value const& value, std::optional<bool> is_signed) {
    bool const one_number = value.numbers.size() == 1;
    auto const text = lower_case(trim(value.text));
    if (name == "scale_factor") return !one_number || value.numbers[0] != 1;
    if (name == "add_offset") return !one_number || value.numbers[0] != 0;
    if (name == "_Unsigned") return is_signed == (one_number ? value.numbers[0] != 0 : text == "true");
    if (name == "IMAGE_SUBCLASS") return text == "image_indexed";
    return false;
}

}  // namespace

number_meaning meaning_of(place const& where, dataset const& handle) {
    static constexpr std::array changing{"scale_factor", "add_offset", "_Unsigned", "IMAGE_SUBCLASS"};
    static constexpr std::array told{"_FillValue",  "missing_value", "valid_min",           "valid_max",
                                     "valid_range", "flag_values",   "IMAGE_WHITE_IS_ZERO", "units"};
    number_meaning meaning;
    auto const add = [&](std::string& list, char const* name, attribute_value const& value) {
        list += fmt::format("{}{} {}", list.empty() ? "" : ", ", name, value.words());
    };
    auto const is_signed = is_signed_integer(where, handle);
    for (char const* const name : changing)
        if (auto const value = find_value(where, handle, name); value && changes_numbers(name, *value, is_signed))
            add(meaning.changed_by, name, *value);
    for (char const* const name : told)
        if (auto const value = find_value(where, handle, name)) add(meaning.told, name, *value);
    return meaning;
}

namespace {

struct array_list {
    place where;
    id file;
    std::size_t most;
    std::vector<std::string> lines;
    std::size_t count = 0;
};

std::string describe_array(array_list const& list, std::string const& name) try {
    place const at{list.where.file, "/" + name};
    dataset const handle(checked(at, "H5Dopen2", [&] { return H5Dopen2(list.file, name.c_str(), H5P_DEFAULT); }));
    auto const extent = extent_of(at, space_of(at, handle));
    auto const type = element_of(at, handle);
    return fmt::format("{} [{}] of {}", without_controls(at.object), fmt::join(extent, ", "),
                       type ? to_string(*type) : "a type that is not read");
} catch (hdf5_error const&) {
    return fmt::format("/{}, which cannot be opened", without_controls(name));
}

#if H5_VERSION_GE(1, 12, 0)
using object_info = H5O_info2_t;
#else
using object_info = H5O_info_t;
#endif

herr_t add_array(hid_t, char const* name, object_info const* info, void* to) noexcept try {
    auto& list = *static_cast<array_list*>(to);
    if (info->type != H5O_TYPE_DATASET) return 0;
    if (++list.count <= list.most) list.lines.push_back(describe_array(list, name));
    return 0;
} catch (...) {
    return -1;
}

}  // namespace

std::string arrays_in(place const& where, file const& parent) {
    constexpr std::size_t most = 12;
    array_list list{where, parent.get(), most, {}, 0};
    checked(where, "H5Ovisit", [&] {
#if H5_VERSION_GE(1, 12, 0)
        return H5Ovisit3(parent.get(), H5_INDEX_NAME, H5_ITER_INC, add_array, &list, H5O_INFO_BASIC);
#else
        return H5Ovisit(parent.get(), H5_INDEX_NAME, H5_ITER_INC, add_array, &list);
#endif
    });
    if (list.count == 0) return "no array";
    return fmt::format("{}{}", fmt::join(list.lines, "; "),
                       list.count > most ? fmt::format("; and {} more", list.count - most) : "");
}

}  // namespace muster::hdf5
