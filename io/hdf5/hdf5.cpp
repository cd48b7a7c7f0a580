#include "io/hdf5/hdf5.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "io/hdf5/hdf5_check.hpp"

namespace muster::hdf5 {

static_assert(std::is_same_v<id, hid_t>, "HDF5 1.10 or later, whose handles are 64-bit numbers");

// Destructors come here: failures are dropped, and HDF5 must not print them either.
template <kind Kind>
void traits<Kind>::close(type handle) noexcept {
    quiet const silence;
    if constexpr (Kind == kind::file) H5Fclose(handle);
    if constexpr (Kind == kind::group) H5Gclose(handle);
    if constexpr (Kind == kind::dataset) H5Dclose(handle);
    if constexpr (Kind == kind::dataspace) H5Sclose(handle);
    if constexpr (Kind == kind::property_list) H5Pclose(handle);
    if constexpr (Kind == kind::attribute) H5Aclose(handle);
    if constexpr (Kind == kind::datatype) H5Tclose(handle);
}
template struct traits<kind::file>;
template struct traits<kind::group>;
template struct traits<kind::dataset>;
template struct traits<kind::dataspace>;
template struct traits<kind::property_list>;
template struct traits<kind::attribute>;
template struct traits<kind::datatype>;

namespace {

hid_t memory_type(element type) {
    return type == element::u8 ? H5T_NATIVE_UINT8 : H5T_NATIVE_UINT64;
}
hid_t file_type(element type) {
    return type == element::u8 ? H5T_STD_U8LE : H5T_STD_U64LE;
}

place within(place const& where, std::string const& name) {
    return {where.file, where.object == "/" || where.object.empty() ? "/" + name : where.object + "/" + name};
}

property_list make_list(place const& where, hid_t list_class) {
    return property_list(checked(where, "H5Pcreate", [&] { return H5Pcreate(list_class); }));
}

std::vector<hsize_t> sizes(std::span<std::uint64_t const> values) {
    return {values.begin(), values.end()};
}

dataspace make_space(place const& where, std::span<std::uint64_t const> extent) {
    std::vector<hsize_t> const dimensions = sizes(extent);
    return dataspace(checked(where, "H5Screate_simple",
                             [&] { return H5Screate_simple(static_cast<int>(dimensions.size()), dimensions.data(), nullptr); }));
}

dataspace space_of(place const& where, dataset const& handle) {
    return dataspace(checked(where, "H5Dget_space", [&] { return H5Dget_space(handle.get()); }));
}

std::vector<hsize_t> extent_of(place const& where, dataspace const& space) {
    int const rank = checked(where, "H5Sget_simple_extent_ndims", [&] { return H5Sget_simple_extent_ndims(space.get()); });
    std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
    checked(where, "H5Sget_simple_extent_dims", [&] { return H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr); });
    return extent;
}

/// What both sides of a transfer select: `rows` of the dataset, and as many elements one after the other in memory.
struct selection {
    dataspace in_file;
    dataspace in_memory;
};

selection select(place const& where, dataset const& handle, hyperslab rows) {
    dataspace file_space = space_of(where, handle);
    std::vector<hsize_t> count = extent_of(where, file_space);
    expect(!count.empty() && rows.end() <= count[0], "rows inside the dataset");
    std::vector<hsize_t> start(count.size(), 0);
    start[0] = rows.first;
    count[0] = rows.count;
    std::vector<std::uint64_t> const memory_extent(count.begin(), count.end());
    dataspace memory_space = make_space(where, memory_extent);
    if (rows.empty()) {
        checked(where, "H5Sselect_none", [&] { return H5Sselect_none(file_space.get()); });
        checked(where, "H5Sselect_none", [&] { return H5Sselect_none(memory_space.get()); });
    } else {
        checked(where, "H5Sselect_hyperslab", [&] {
            return H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
        });
    }
    return {std::move(file_space), std::move(memory_space)};
}

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
        return H5Acreate2(object, name.c_str(), string != nullptr ? type : H5T_STD_U64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT);
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

property_list file_access(place const& where, std::size_t alignment_bytes, mpi_handle communicator) {
    property_list list = make_list(where, H5P_FILE_ACCESS);
    checked(where, "H5Pset_libver_bounds", [&] { return H5Pset_libver_bounds(list.get(), H5F_LIBVER_V18, H5F_LIBVER_LATEST); });
    if (alignment_bytes > 1)
        checked(where, "H5Pset_alignment", [&] { return H5Pset_alignment(list.get(), 65536, alignment_bytes); });
    if (communicator != nullptr) {
        MPI_Comm const comm = *static_cast<MPI_Comm const*>(communicator);
        checked(where, "H5Pset_fapl_mpio", [&] { return H5Pset_fapl_mpio(list.get(), comm, MPI_INFO_NULL); });
        checked(where, "H5Pset_all_coll_metadata_ops", [&] { return H5Pset_all_coll_metadata_ops(list.get(), true); });
        checked(where, "H5Pset_coll_metadata_write", [&] { return H5Pset_coll_metadata_write(list.get(), true); });
    }
    return list;
}

property_list transfer(place const& where, bool collective) {
    property_list list = make_list(where, H5P_DATASET_XFER);
    if (collective) checked(where, "H5Pset_dxpl_mpio", [&] { return H5Pset_dxpl_mpio(list.get(), H5FD_MPIO_COLLECTIVE); });
    return list;
}

void require_collective(place const& where, property_list const& list) {
    H5D_mpio_actual_io_mode_t mode = H5D_MPIO_NO_COLLECTIVE;
    checked(where, "H5Pget_mpio_actual_io_mode", [&] { return H5Pget_mpio_actual_io_mode(list.get(), &mode); });
    if (mode == H5D_MPIO_CONTIGUOUS_COLLECTIVE || mode == H5D_MPIO_CHUNK_COLLECTIVE) return;
    std::uint32_t mine = 0;
    std::uint32_t all = 0;
    checked(where, "H5Pget_mpio_no_collective_cause", [&] { return H5Pget_mpio_no_collective_cause(list.get(), &mine, &all); });
    // Chunked, and this rank had no chunk in the transfer: HDF5 reports its own part as independent without there being a cause.
    if (all == H5D_MPIO_COLLECTIVE) return;
    throw hdf5_error("H5Pget_mpio_actual_io_mode", where.file, where.object,
                     {fmt::format("the transfer was not collective: mode {:#x}, cause here {:#x}, on any rank {:#x} "
                                  "(H5D_mpio_no_collective_cause_t)",
                                  static_cast<unsigned>(mode), mine, all)},
                     static_cast<int>(mode));
}

/// A creation list without times, which would make two conversions of the same input differ.
property_list timeless_list(place const& where, hid_t list_class) {
    property_list list = make_list(where, list_class);
    checked(where, "H5Pset_obj_track_times", [&] { return H5Pset_obj_track_times(list.get(), false); });
    return list;
}

file create_file(place const& where, property_list const& access) {
    property_list const list = timeless_list(where, H5P_FILE_CREATE);
    return file(
        checked(where, "H5Fcreate", [&] { return H5Fcreate(where.file.c_str(), H5F_ACC_EXCL, list.get(), access.get()); }));
}

file open_file(place const& where, property_list const& access) {
    return file(checked(where, "H5Fopen", [&] { return H5Fopen(where.file.c_str(), H5F_ACC_RDONLY, access.get()); }));
}

void close(place const& where, file&& handle) {
    id const raw = handle.release();
    checked(where, "H5Fclose", [&] { return H5Fclose(raw); });
}

group create_group(place const& where, file const& parent, std::string const& name) {
    place const at = within(where, name);
    property_list const list = timeless_list(at, H5P_GROUP_CREATE);
    return group(
        checked(at, "H5Gcreate2", [&] { return H5Gcreate2(parent.get(), name.c_str(), H5P_DEFAULT, list.get(), H5P_DEFAULT); }));
}

group open_group(place const& where, file const& parent, std::string const& name) {
    place const at = within(where, name);
    return group(checked(at, "H5Gopen2", [&] { return H5Gopen2(parent.get(), name.c_str(), H5P_DEFAULT); }));
}

std::vector<std::string> group_names(place const& where, file const& parent) {
    H5G_info_t info{};
    checked(where, "H5Gget_info", [&] { return H5Gget_info(parent.get(), &info); });
    std::vector<std::string> names;
    for (hsize_t i = 0; i < info.nlinks; ++i) {
        auto const name_of = [&](char* text, std::size_t size) {
            return H5Lget_name_by_idx(parent.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i, text, size, H5P_DEFAULT);
        };
        auto const length = checked(where, "H5Lget_name_by_idx", [&] { return name_of(nullptr, 0); });
        std::string name(static_cast<std::size_t>(length) + 1, '\0');
        checked(where, "H5Lget_name_by_idx", [&] { return name_of(name.data(), name.size()); });
        name.pop_back();
        // A link out of the file, or to nothing, is not followed: a dataset is in one file.
        H5L_info_t link{};
        checked(where, "H5Lget_info", [&] { return H5Lget_info(parent.get(), name.c_str(), &link, H5P_DEFAULT); });
        if (link.type != H5L_TYPE_HARD) continue;
        H5O_info_t object{};
        checked(within(where, name), "H5Oget_info_by_name2",
                [&] { return H5Oget_info_by_name2(parent.get(), name.c_str(), &object, H5O_INFO_BASIC, H5P_DEFAULT); });
        if (object.type == H5O_TYPE_GROUP) names.push_back(name);
    }
    return names;
}

dataset create_dataset(place const& where, group const& parent, std::string const& name, element type,
                       std::span<std::uint64_t const> extent, std::span<std::uint64_t const> chunk) {
    place const at = within(where, name);
    property_list const list = timeless_list(at, H5P_DATASET_CREATE);
    // Filling would write every byte twice.
    checked(at, "H5Pset_fill_time", [&] { return H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER); });
    checked(at, "H5Pset_alloc_time", [&] { return H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY); });
    if (!chunk.empty()) {
        std::vector<hsize_t> const dimensions = sizes(chunk);
        checked(at, "H5Pset_chunk",
                [&] { return H5Pset_chunk(list.get(), static_cast<int>(dimensions.size()), dimensions.data()); });
    }
    dataspace const space = make_space(at, extent);
    return dataset(checked(at, "H5Dcreate2", [&] {
        return H5Dcreate2(parent.get(), name.c_str(), file_type(type), space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT);
    }));
}

dataset open_dataset(place const& where, group const& parent, std::string const& name) {
    place const at = within(where, name);
    return dataset(checked(at, "H5Dopen2", [&] { return H5Dopen2(parent.get(), name.c_str(), H5P_DEFAULT); }));
}

void close(place const& where, dataset&& handle) {
    id const raw = handle.release();
    checked(where, "H5Dclose", [&] { return H5Dclose(raw); });
}

dataset_form form_of(place const& where, dataset const& handle) {
    dataset_form form;
    std::vector<hsize_t> const extent = extent_of(where, space_of(where, handle));
    form.extent.assign(extent.begin(), extent.end());
    property_list const list(checked(where, "H5Dget_create_plist", [&] { return H5Dget_create_plist(handle.get()); }));
    auto const layout = checked(where, "H5Pget_layout", [&] { return H5Pget_layout(list.get()); });
    if (layout == H5D_CHUNKED) {
        std::vector<hsize_t> chunk(extent.size());
        checked(where, "H5Pget_chunk", [&] { return H5Pget_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data()); });
        form.chunk.assign(chunk.begin(), chunk.end());
    }
    form.filtered = checked(where, "H5Pget_nfilters", [&] { return H5Pget_nfilters(list.get()); }) > 0;
    form.external = checked(where, "H5Pget_external_count", [&] { return H5Pget_external_count(list.get()); }) > 0;
    quiet const silence;
    form.stored_bytes = H5Dget_storage_size(handle.get());
    haddr_t const offset = H5Dget_offset(handle.get());
    if (layout == H5D_CONTIGUOUS && !form.external && offset != HADDR_UNDEF) form.offset = offset;
    return form;
}

bool holds(place const& where, dataset const& handle, element type) {
    datatype const stored(checked(where, "H5Dget_type", [&] { return H5Dget_type(handle.get()); }));
    quiet const silence;
    return H5Tget_class(stored.get()) == H5T_INTEGER && H5Tget_sign(stored.get()) == H5T_SGN_NONE &&
           H5Tget_size(stored.get()) == (type == element::u8 ? 1 : 8);
}

void read(place const& where, dataset const& handle, hyperslab rows, element type, void* data, property_list const& list) {
    selection const chosen = select(where, handle, rows);
    char nothing = 0;  // HDF5 wants an address even where there is nothing to transfer
    checked(where, "H5Dread", [&] {
        return H5Dread(handle.get(), memory_type(type), chosen.in_memory.get(), chosen.in_file.get(), list.get(),
                       data != nullptr ? data : &nothing);
    });
}

void write(place const& where, dataset const& handle, hyperslab rows, element type, void const* data, property_list const& list) {
    selection const chosen = select(where, handle, rows);
    char const nothing = 0;
    checked(where, "H5Dwrite", [&] {
        return H5Dwrite(handle.get(), memory_type(type), chosen.in_memory.get(), chosen.in_file.get(), list.get(),
                        data != nullptr ? data : &nothing);
    });
}

void write_attribute(place const& where, id object, std::string const& name, std::uint64_t value) {
    place const at = within(where, name);
    dataspace const space(checked(at, "H5Screate", [&] { return H5Screate(H5S_SCALAR); }));
    write_raw_attribute(at, object, name, nullptr, H5T_NATIVE_UINT64, space, &value);
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
    std::uint64_t const extent = values.size();
    dataspace const space = make_space(at, {&extent, 1});
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
