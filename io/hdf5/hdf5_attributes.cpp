#include <hdf5.h>

#include <algorithm>

#include "base/throw_error.hpp"
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

/// Writes an attribute whose type is the same in the file and in memory.
void write_raw_attribute(place const& at, id object, std::string const& name, hid_t type, dataspace const& space,
                         void const* data) {
    attribute handle(
        checked(at, "H5Acreate2", [&] { return H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT); }));
    checked(at, "H5Awrite", [&] { return H5Awrite(handle.get(), type, data); });
    id const raw = handle.release();
    checked(at, "H5Aclose", [&] { return H5Aclose(raw); });
}

void write_scalar(place const& at, id object, std::string const& name, hid_t type, void const* data) {
    dataspace const space(checked(at, "H5Screate", [&] { return H5Screate(H5S_SCALAR); }));
    write_raw_attribute(at, object, name, type, space, data);
}

[[noreturn]] void wrong_kind(place const& at, std::string_view expected) {
    throw_error(errc::invalid_data, "{}: attribute {} is no {}; docs/dataset-format.md describes a muster dataset", at.file,
                at.object, expected);
}

template <typename Number>
std::optional<Number> read_single(place const& where, id object, std::string const& name, hid_t type, bool may_be_real,
                                  std::string_view expected) {
    place const at = within(where, name);
    auto const found = find_attribute(at, object, name);
    if (!found) return std::nullopt;
    auto const kind = H5Tget_class(found->type.get());
    if ((kind != H5T_INTEGER && !(may_be_real && kind == H5T_FLOAT)) || found->count != 1) wrong_kind(at, expected);
    Number value = 0;
    checked(at, "H5Aread", [&] { return H5Aread(found->handle.get(), type, &value); });
    return value;
}

std::vector<std::string> read_variable_strings(place const& at, found_attribute const& from) {
    std::vector<char*> pointers(from.count, nullptr);
    checked(at, "H5Aread", [&] { return H5Aread(from.handle.get(), from.type.get(), pointers.data()); });
    std::vector<std::string> values;
    for (char const* pointer : pointers) values.emplace_back(pointer != nullptr ? pointer : "");
    checked(at, "H5Dvlen_reclaim",
            [&] { return H5Dvlen_reclaim(from.type.get(), from.space.get(), H5P_DEFAULT, pointers.data()); });
    return values;
}

std::vector<std::string> read_fixed_strings(place const& at, found_attribute const& from) {
    std::size_t const length = H5Tget_size(from.type.get());
    std::vector<char> bytes(from.count * length);
    checked(at, "H5Aread", [&] { return H5Aread(from.handle.get(), from.type.get(), bytes.data()); });
    std::vector<std::string> values;
    for (std::size_t i = 0; i < from.count; ++i) {
        char const* const begin = bytes.data() + i * length;
        values.emplace_back(begin, std::find(begin, begin + length, '\0'));
    }
    return values;
}

}  // namespace

std::optional<found_attribute> find_attribute(place const& at, id object, std::string const& name) {
    if (checked(at, "H5Aexists", [&] { return H5Aexists(object, name.c_str()); }) == 0) return std::nullopt;
    attribute handle(checked(at, "H5Aopen", [&] { return H5Aopen(object, name.c_str(), H5P_DEFAULT); }));
    datatype type(checked(at, "H5Aget_type", [&] { return H5Aget_type(handle.get()); }));
    dataspace space(checked(at, "H5Aget_space", [&] { return H5Aget_space(handle.get()); }));
    auto const count = checked(at, "H5Sget_simple_extent_npoints", [&] { return H5Sget_simple_extent_npoints(space.get()); });
    return found_attribute{std::move(handle), std::move(type), std::move(space), static_cast<std::size_t>(count)};
}

void write_attribute(place const& where, id object, std::string const& name, std::uint64_t value) {
    write_scalar(within(where, name), object, name, H5T_STD_U64LE, &value);
}

void write_attribute(place const& where, id object, std::string const& name, double value) {
    write_scalar(within(where, name), object, name, H5T_IEEE_F64LE, &value);
}

void write_attribute(place const& where, id object, std::string const& name, std::string const& value) {
    place const at = within(where, name);
    write_scalar(at, object, name, string_type(at, value.size()).get(), value.c_str());
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
    write_raw_attribute(at, object, name, string_type(at, length).get(), space, bytes.data());
}

std::optional<std::uint64_t> read_number(place const& where, id object, std::string const& name) {
    return read_single<std::uint64_t>(where, object, name, H5T_NATIVE_UINT64, false, "single whole number");
}

std::optional<double> read_real(place const& where, id object, std::string const& name) {
    return read_single<double>(where, object, name, H5T_NATIVE_DOUBLE, true, "single number");
}

std::optional<std::vector<std::string>> read_strings(place const& where, id object, std::string const& name) {
    place const at = within(where, name);
    auto const found = find_attribute(at, object, name);
    if (!found) return std::nullopt;
    if (H5Tget_class(found->type.get()) != H5T_STRING || found->count > 65536) wrong_kind(at, "text");
    bool const variable = checked(at, "H5Tis_variable_str", [&] { return H5Tis_variable_str(found->type.get()); }) > 0;
    return variable ? read_variable_strings(at, *found) : read_fixed_strings(at, *found);
}

}  // namespace muster::hdf5
