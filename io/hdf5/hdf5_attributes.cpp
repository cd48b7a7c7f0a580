#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>

#include "io/hdf5/hdf5_check.hpp"

namespace muster::hdf5 {

namespace {

datatype string_type(place const& where, std::size_t length) {
    datatype type(checked(where, "H5Tcopy", [&] { return H5Tcopy(H5T_C_S1); }));
    checked(where, "H5Tset_size", [&] { return H5Tset_size(type.get(), std::max<std::size_t>(length, 1)); });
    checked(where, "H5Tset_strpad", [&] { return H5Tset_strpad(type.get(), H5T_STR_NULLPAD); });
    checked(where, "H5Tset_cset", [&] { return H5Tset_cset(type.get(), H5T_CSET_UTF8); });
    return type;
}

void write_raw_attribute(place const& at, id object, std::string const& name, datatype const* string, hid_t number,
                         dataspace const& space, void const* data) {
    hid_t const type = string != nullptr ? string->get() : number;
    attribute handle(checked(at, "H5Acreate2", [&] {
        hid_t const little = number == H5T_NATIVE_DOUBLE ? H5T_IEEE_F64LE : H5T_STD_U64LE;
        return H5Acreate2(object, name.c_str(), string != nullptr ? type : little, space.get(), H5P_DEFAULT, H5P_DEFAULT);
    }));
    checked(at, "H5Awrite", [&] { return H5Awrite(handle.get(), type, data); });
    id const raw = handle.release();
    checked(at, "H5Aclose", [&] { return H5Aclose(raw); });
}

std::optional<attribute> find_attribute(place const& at, id object, std::string const& name) {
    if (checked(at, "H5Aexists", [&] { return H5Aexists(object, name.c_str()); }) == 0) return std::nullopt;
    return attribute(checked(at, "H5Aopen", [&] { return H5Aopen(object, name.c_str(), H5P_DEFAULT); }));
}

[[noreturn]] void wrong_kind(place const& at, std::string_view expected) {
    throw error(errc::invalid_data, fmt::format("{}: attribute {} is no {}; docs/dataset-format.md describes a muster dataset",
                                                at.file, at.object, expected));
}

std::vector<std::string> read_variable_strings(place const& at, attribute const& handle, datatype const& type,
                                               dataspace const& space, std::size_t count) {
    std::vector<char*> pointers(count, nullptr);
    checked(at, "H5Aread", [&] { return H5Aread(handle.get(), type.get(), pointers.data()); });
    std::vector<std::string> values;
    for (char const* pointer : pointers) values.emplace_back(pointer != nullptr ? pointer : "");
    checked(at, "H5Dvlen_reclaim", [&] { return H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, pointers.data()); });
    return values;
}

std::vector<std::string> read_fixed_strings(place const& at, attribute const& handle, datatype const& type, std::size_t count) {
    std::size_t const length = H5Tget_size(type.get());
    std::vector<char> bytes(count * length);
    checked(at, "H5Aread", [&] { return H5Aread(handle.get(), type.get(), bytes.data()); });
    std::vector<std::string> values;
    for (std::size_t i = 0; i < count; ++i) {
        char const* const begin = bytes.data() + i * length;
        values.emplace_back(begin, std::find(begin, begin + length, '\0'));
    }
    return values;
}

}  // namespace

void write_attribute(place const& where, id object, std::string const& name, std::uint64_t value) {
    place const at = within(where, name);
    dataspace const space(checked(at, "H5Screate", [&] { return H5Screate(H5S_SCALAR); }));
    write_raw_attribute(at, object, name, nullptr, H5T_NATIVE_UINT64, space, &value);
}

void write_attribute(place const& where, id object, std::string const& name, double value) {
    place const at = within(where, name);
    dataspace const space(checked(at, "H5Screate", [&] { return H5Screate(H5S_SCALAR); }));
    write_raw_attribute(at, object, name, nullptr, H5T_NATIVE_DOUBLE, space, &value);
}

void write_attribute(place const& where, id object, std::string const& name, std::string const& value) {
    place const at = within(where, name);
    dataspace const space(checked(at, "H5Screate", [&] { return H5Screate(H5S_SCALAR); }));
    datatype const type = string_type(at, value.size());
    write_raw_attribute(at, object, name, &type, 0, space, value.c_str());
}

void write_attribute(place const& where, id object, std::string const& name, std::vector<std::string> const& values) {
    place const at = within(where, name);
    std::size_t length = 1;
    for (std::string const& value : values) length = std::max(length, value.size());
    std::vector<char> bytes(values.size() * length, '\0');
    for (std::size_t i = 0; i < values.size(); ++i)
        std::copy(values[i].begin(), values[i].end(), bytes.begin() + static_cast<std::ptrdiff_t>(i * length));
    hsize_t const extent = values.size();
    dataspace const space(checked(at, "H5Screate_simple", [&] { return H5Screate_simple(1, &extent, nullptr); }));
    datatype const type = string_type(at, length);
    write_raw_attribute(at, object, name, &type, 0, space, bytes.data());
}

std::optional<std::uint64_t> read_number(place const& where, id object, std::string const& name) {
    place const at = within(where, name);
    auto const handle = find_attribute(at, object, name);
    if (!handle) return std::nullopt;
    datatype const type(checked(at, "H5Aget_type", [&] { return H5Aget_type(handle->get()); }));
    dataspace const space(checked(at, "H5Aget_space", [&] { return H5Aget_space(handle->get()); }));
    if (H5Tget_class(type.get()) != H5T_INTEGER || H5Sget_simple_extent_npoints(space.get()) != 1)
        wrong_kind(at, "single whole number");
    std::uint64_t value = 0;
    checked(at, "H5Aread", [&] { return H5Aread(handle->get(), H5T_NATIVE_UINT64, &value); });
    return value;
}

std::optional<double> read_real(place const& where, id object, std::string const& name) {
    place const at = within(where, name);
    auto const handle = find_attribute(at, object, name);
    if (!handle) return std::nullopt;
    datatype const type(checked(at, "H5Aget_type", [&] { return H5Aget_type(handle->get()); }));
    dataspace const space(checked(at, "H5Aget_space", [&] { return H5Aget_space(handle->get()); }));
    auto const kind_of = H5Tget_class(type.get());
    if ((kind_of != H5T_INTEGER && kind_of != H5T_FLOAT) || H5Sget_simple_extent_npoints(space.get()) != 1)
        wrong_kind(at, "single number");
    double value = 0;
    checked(at, "H5Aread", [&] { return H5Aread(handle->get(), H5T_NATIVE_DOUBLE, &value); });
    return value;
}

std::optional<std::vector<std::string>> read_strings(place const& where, id object, std::string const& name) {
    place const at = within(where, name);
    auto const handle = find_attribute(at, object, name);
    if (!handle) return std::nullopt;
    datatype const type(checked(at, "H5Aget_type", [&] { return H5Aget_type(handle->get()); }));
    dataspace const space(checked(at, "H5Aget_space", [&] { return H5Aget_space(handle->get()); }));
    auto const count = checked(at, "H5Sget_simple_extent_npoints", [&] { return H5Sget_simple_extent_npoints(space.get()); });
    if (H5Tget_class(type.get()) != H5T_STRING || count > 65536) wrong_kind(at, "text");
    bool const variable = checked(at, "H5Tis_variable_str", [&] { return H5Tis_variable_str(type.get()); }) > 0;
    if (variable) return read_variable_strings(at, *handle, type, space, static_cast<std::size_t>(count));
    return read_fixed_strings(at, *handle, type, static_cast<std::size_t>(count));
}

}  // namespace muster::hdf5
