#include "io/hdf5/hdf5.hpp"

#include <fmt/format.h>
#include <hdf5.h>
#include <mpi.h>

#include <filesystem>
#include <type_traits>

#include "base/text.hpp"
#include "base/throw_error.hpp"
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

/// Returns the type in a file and in memory: least significant byte first, as on every machine that muster runs on.
hid_t type_of(element_type type) {
    switch (type) {
        case element_type::u8: return H5T_STD_U8LE;
        case element_type::i8: return H5T_STD_I8LE;
        case element_type::u16: return H5T_STD_U16LE;
        case element_type::i16: return H5T_STD_I16LE;
        case element_type::u32: return H5T_STD_U32LE;
        case element_type::i32: return H5T_STD_I32LE;
        case element_type::u64: return H5T_STD_U64LE;
        case element_type::i64: return H5T_STD_I64LE;
        case element_type::f32: return H5T_IEEE_F32LE;
        case element_type::f64: return H5T_IEEE_F64LE;
    }
    return H5I_INVALID_HID;
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

/// Holds what both sides of a transfer select: `rows` of the dataset, and the same number of elements one after the other in memory.
struct selection {
    dataspace in_file;
    dataspace in_memory;
};

selection select(place const& where, dataset const& handle, hyperslab rows) {
    dataspace file_space = space_of(where, handle);
    std::vector<hsize_t> count = sizes(extent_of(where, file_space));
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

// HDF5 1.12 has changed what an object's information holds; by its plain name a call is of one form or another as HDF5 was built.
#if H5_VERSION_GE(1, 12, 0)
using object_info = H5O_info2_t;
#else
using object_info = H5O_info_t;
#endif

herr_t basic_info(hid_t parent, std::string const& name, object_info& info) {
#if H5_VERSION_GE(1, 12, 0)
    return H5Oget_info_by_name3(parent, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT);
#else
    return H5Oget_info_by_name2(parent, name.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT);
#endif
}

constexpr hsize_t most_links = 10'000;  ///< of the root of a file, where each split is a group

/// Called by HDF5 for each link. One out of the file, or to nothing, is not followed: a dataset is in one file.
herr_t add_hard_link(hid_t, char const* name, H5L_info_t const* link, void* names) try {
    if (link->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
} catch (std::bad_alloc const&) {
    return -1;
}

/// A link out of the file, or by name, is not followed: whoever made the file chose where it leads.
void require_inside(place const& at, id parent, std::string const& name) {
    if (checked(at, "H5Lexists", [&] { return H5Lexists(parent, name.c_str(), H5P_DEFAULT); }) <= 0)
        throw_error(errc::not_found, "{}: has no {}; it has {}", at.file, at.object,
                    arrays_in(at, file(checked(at, "H5Iget_file_id", [&] { return H5Iget_file_id(parent); }))));
    H5L_info_t link{};
    checked(at, "H5Lget_info", [&] { return H5Lget_info(parent, name.c_str(), &link, H5P_DEFAULT); });
    if (link.type == H5L_TYPE_HARD) return;
    throw_error(errc::invalid_data,
                "{}: {}: is {} link, which is not followed since it may lead out of the file; put the data themselves there",
                at.file, at.object, link.type == H5L_TYPE_EXTERNAL ? "an external" : "a soft");
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

file open_file(place const& where, property_list const& access, bool writable) {
    if (std::error_code ignored; std::filesystem::is_directory(where.file, ignored))
        throw_error(errc::io, "{0}: is a folder, and a dataset is one file; make it by: muster stage convert {0} -o {1}.h5",
                    shell_quote(where.file),
                    shell_quote(std::filesystem::path(where.file + "/").parent_path().filename().string()));
    unsigned const how = writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY;
    return file(checked(where, "H5Fopen", [&] { return H5Fopen(where.file.c_str(), how, access.get()); }));
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
    require_inside(at, parent.get(), name);
    return group(checked(at, "H5Gopen2", [&] { return H5Gopen2(parent.get(), name.c_str(), H5P_DEFAULT); }));
}

void keep_out_of_exit() noexcept {
    H5dont_atexit();
    H5open();  // once MPI is initialised, it would have MPI_Finalize end it
}

std::vector<std::string> group_names(place const& where, file const& parent) {
    H5G_info_t info{};
    checked(where, "H5Gget_info", [&] { return H5Gget_info(parent.get(), &info); });
    if (info.nlinks > most_links)
        throw_error(
            errc::invalid_data,
            "{}: {}: has {} entries, more than the {} that are believed of a dataset; convert it again, one group for each split",
            where.file, where.object, info.nlinks, most_links);
    std::vector<std::string> names;
    checked(where, "H5Literate",
            [&] { return H5Literate(parent.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add_hard_link, &names); });
    std::erase_if(names, [&](std::string const& name) {
        object_info object{};
        checked(within(where, name), "H5Oget_info_by_name", [&] { return basic_info(parent.get(), name, object); });
        return object.type != H5O_TYPE_GROUP;
    });
    return names;
}

bool has_group(place const& where, file const& parent, std::string const& name) {
    if (name.empty() || name == "." || name.find('/') != std::string::npos) return false;
    if (checked(where, "H5Lexists", [&] { return H5Lexists(parent.get(), name.c_str(), H5P_DEFAULT); }) <= 0) return false;
    H5L_info_t link{};
    checked(where, "H5Lget_info", [&] { return H5Lget_info(parent.get(), name.c_str(), &link, H5P_DEFAULT); });
    if (link.type != H5L_TYPE_HARD) return false;
    object_info object{};
    checked(within(where, name), "H5Oget_info_by_name", [&] { return basic_info(parent.get(), name, object); });
    return object.type == H5O_TYPE_GROUP;
}

dataset create_dataset(place const& where, group const& parent, std::string const& name, element_type type,
                       std::span<std::uint64_t const> extent, std::span<std::uint64_t const> chunk, unsigned gzip_level) {
    place const at = within(where, name);
    property_list const list = timeless_list(at, H5P_DATASET_CREATE);
    // Filling would write every byte twice.
    checked(at, "H5Pset_fill_time", [&] { return H5Pset_fill_time(list.get(), H5D_FILL_TIME_NEVER); });
    if (gzip_level == 0) checked(at, "H5Pset_alloc_time", [&] { return H5Pset_alloc_time(list.get(), H5D_ALLOC_TIME_EARLY); });
    if (!chunk.empty()) {
        std::vector<hsize_t> const dimensions = sizes(chunk);
        checked(at, "H5Pset_chunk",
                [&] { return H5Pset_chunk(list.get(), static_cast<int>(dimensions.size()), dimensions.data()); });
        if (gzip_level != 0) checked(at, "H5Pset_deflate", [&] { return H5Pset_deflate(list.get(), gzip_level); });
    }
    dataspace const space = make_space(at, extent);
    return dataset(checked(at, "H5Dcreate2", [&] {
        return H5Dcreate2(parent.get(), name.c_str(), type_of(type), space.get(), H5P_DEFAULT, list.get(), H5P_DEFAULT);
    }));
}

dataset open_dataset(place const& where, group const& parent, std::string const& name) {
    place const at = within(where, name);
    require_inside(at, parent.get(), name);
    return dataset(checked(at, "H5Dopen2", [&] { return H5Dopen2(parent.get(), name.c_str(), H5P_DEFAULT); }));
}

dataset open_dataset_at(place const& where, file const& parent) {
    if (where.object.size() < 2 || where.object[0] != '/')
        throw_error(errc::usage, "{}: '{}' is no path of an array in it; write it from the root, as /train/images", where.file,
                    where.object);
    for (std::size_t slash = where.object.find('/', 1);; slash = where.object.find('/', slash + 1)) {
        std::string const so_far = where.object.substr(0, slash);
        require_inside({where.file, so_far}, parent.get(), so_far);
        if (slash == std::string::npos) break;
    }
    return dataset(checked(where, "H5Dopen2", [&] { return H5Dopen2(parent.get(), where.object.c_str(), H5P_DEFAULT); }));
}

bool has_dataset(place const& where, file const& parent) {
    quiet const silence;
    for (std::size_t slash = where.object.find('/', 1);; slash = where.object.find('/', slash + 1)) {
        if (H5Lexists(parent.get(), where.object.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
        if (slash == std::string::npos) break;
    }
    object_info object{};
    return basic_info(parent.get(), where.object, object) >= 0 && object.type == H5O_TYPE_DATASET;
}

void close(place const& where, dataset&& handle) {
    id const raw = handle.release();
    checked(where, "H5Dclose", [&] { return H5Dclose(raw); });
}

void read(place const& where, dataset const& handle, hyperslab rows, element_type type, void* data, property_list const& list) {
    selection const chosen = select(where, handle, rows);
    char nothing = 0;  // HDF5 wants an address even where there is nothing to transfer
    checked(where, "H5Dread", [&] {
        return H5Dread(handle.get(), type_of(type), chosen.in_memory.get(), chosen.in_file.get(), list.get(),
                       data != nullptr ? data : &nothing);
    });
}

void write(place const& where, dataset const& handle, hyperslab rows, element_type type, void const* data,
           property_list const& list) {
    selection const chosen = select(where, handle, rows);
    char const nothing = 0;
    checked(where, "H5Dwrite", [&] {
        return H5Dwrite(handle.get(), type_of(type), chosen.in_memory.get(), chosen.in_file.get(), list.get(),
                        data != nullptr ? data : &nothing);
    });
}

}  // namespace muster::hdf5
