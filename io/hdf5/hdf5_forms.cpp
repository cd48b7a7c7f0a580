#include <fmt/format.h>
#include <hdf5.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "base/text.hpp"
#include "io/hdf5/hdf5.hpp"
#include "io/hdf5/hdf5_check.hpp"

namespace muster::hdf5 {

namespace {

static_assert(std::is_unsigned_v<hsize_t> && sizeof(hsize_t) == sizeof(std::uint64_t));

H5Z_filter_t first_filter(place const& where, property_list const& list) {
    unsigned flags = 0;
    std::size_t values = 0;
    return checked(where, "H5Pget_filter2",
                   [&] { return H5Pget_filter2(list.get(), 0, &flags, &values, nullptr, 0, nullptr, nullptr); });
}

/// "lzf (32000)": the first filter of the list that this process does not have.
std::string missing_filter(place const& where, property_list const& list, int filters) {
    for (int i = 0; i < filters; ++i) {
        unsigned flags = 0;
        std::size_t values = 0;
        char name[64] = "";
        H5Z_filter_t const filter = checked(where, "H5Pget_filter2", [&] {
            return H5Pget_filter2(list.get(), static_cast<unsigned>(i), &flags, &values, nullptr, sizeof name, name, nullptr);
        });
        quiet const silence;
        if (H5Zfilter_avail(filter) > 0) continue;
        return name[0] != '\0' ? fmt::format("{} ({})", without_controls(name), filter) : fmt::format("{}", filter);
    }
    return {};
}

}  // namespace

dataspace space_of(place const& where, dataset const& handle) {
    return dataspace(checked(where, "H5Dget_space", [&] { return H5Dget_space(handle.get()); }));
}

std::vector<std::uint64_t> extent_of(place const& where, dataspace const& space) {
    int const rank = checked(where, "H5Sget_simple_extent_ndims", [&] { return H5Sget_simple_extent_ndims(space.get()); });
    std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
    checked(where, "H5Sget_simple_extent_dims", [&] { return H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr); });
    return {extent.begin(), extent.end()};
}

std::vector<stored_chunk> stored_chunks(place const& where, dataset const& handle) {
    dataset_form const form = form_of(where, handle);
    std::vector<stored_chunk> chunks;
    if (form.chunk.empty()) return chunks;
    std::vector<hsize_t> first(form.extent.size(), 0);
    for (; first[0] < form.extent[0]; first[0] += form.chunk[0]) {
        unsigned mask = 0;
        haddr_t address = HADDR_UNDEF;
        hsize_t bytes = 0;
        checked(where, "H5Dget_chunk_info_by_coord",
                [&] { return H5Dget_chunk_info_by_coord(handle.get(), first.data(), &mask, &address, &bytes); });
        expect(address != HADDR_UNDEF, "a chunk that has its space");
        chunks.push_back({address, bytes, form.filtered && mask == 0});
    }
    return chunks;
}

void write_chunk(place const& where, dataset const& handle, std::uint64_t first_row, std::span<std::uint8_t const> encoded) {
    std::vector<hsize_t> first(extent_of(where, space_of(where, handle)).size(), 0);
    first[0] = first_row;
    checked(where, "H5Dwrite_chunk",
            [&] { return H5Dwrite_chunk(handle.get(), H5P_DEFAULT, 0, first.data(), encoded.size(), encoded.data()); });
}

dataset_form form_of(place const& where, dataset const& handle) {
    dataset_form form;
    form.extent = extent_of(where, space_of(where, handle));
    property_list const list(checked(where, "H5Dget_create_plist", [&] { return H5Dget_create_plist(handle.get()); }));
    auto const layout = checked(where, "H5Pget_layout", [&] { return H5Pget_layout(list.get()); });
    if (layout == H5D_CHUNKED) {
        std::vector<hsize_t> chunk(form.extent.size());
        checked(where, "H5Pget_chunk", [&] { return H5Pget_chunk(list.get(), static_cast<int>(chunk.size()), chunk.data()); });
        form.chunk.assign(chunk.begin(), chunk.end());
    }
    form.is_virtual = layout == H5D_VIRTUAL;
    datatype const stored(checked(where, "H5Dget_type", [&] { return H5Dget_type(handle.get()); }));
    form.big_endian = H5Tget_order(stored.get()) == H5T_ORDER_BE && H5Tget_size(stored.get()) > 1;
    int const filters = checked(where, "H5Pget_nfilters", [&] { return H5Pget_nfilters(list.get()); });
    form.filtered = filters > 0;
    form.deflated = filters == 1 && first_filter(where, list) == H5Z_FILTER_DEFLATE;
    form.missing_filter = missing_filter(where, list, filters);
    form.external = checked(where, "H5Pget_external_count", [&] { return H5Pget_external_count(list.get()); }) > 0;
    quiet const silence;
    form.stored_bytes = H5Dget_storage_size(handle.get());
    haddr_t const offset = H5Dget_offset(handle.get());
    if (layout == H5D_CONTIGUOUS && !form.external && offset != HADDR_UNDEF) form.offset = offset;
    return form;
}

std::string why_not_read(dataset_form const& form) {
    if (form.external) return "keeps its elements in other files (HDF5 external storage), which are not read";
    if (form.is_virtual) return "is put together from other datasets (HDF5 virtual layout), which are not read";
    if (!form.missing_filter.empty())
        return fmt::format(
            "is compressed by the filter {}, which this HDF5 does not have (`h5repack -f GZIP=1 IN OUT` where it is "
            "there, or h5py, writes the file anew with gzip)",
            form.missing_filter);
    return {};
}

std::optional<element_type> element_of(place const& where, dataset const& handle) {
    datatype stored(checked(where, "H5Dget_type", [&] { return H5Dget_type(handle.get()); }));
    quiet const silence;
    if (H5Tget_class(stored.get()) == H5T_ENUM) stored = datatype(H5Tget_super(stored.get()));
    std::size_t const bytes = H5Tget_size(stored.get());
    bool const is_real = H5Tget_class(stored.get()) == H5T_FLOAT;
    if (!is_real && H5Tget_class(stored.get()) != H5T_INTEGER) return std::nullopt;
    bool const is_signed = !is_real && H5Tget_sign(stored.get()) != H5T_SGN_NONE;
    for (element_type const type : element_types)
        if (bytes_of(type) == bytes && is_real == muster::is_real(type) && is_signed == muster::is_signed(type)) return type;
    return std::nullopt;
}

std::vector<std::pair<std::int64_t, std::string>> enumeration_of(place const& where, dataset const& handle) {
    datatype const stored(checked(where, "H5Dget_type", [&] { return H5Dget_type(handle.get()); }));
    std::vector<std::pair<std::int64_t, std::string>> members;
    if (H5Tget_class(stored.get()) != H5T_ENUM) return members;
    datatype const base(checked(where, "H5Tget_super", [&] { return H5Tget_super(stored.get()); }));
    int const count = checked(where, "H5Tget_nmembers", [&] { return H5Tget_nmembers(stored.get()); });
    for (int i = 0; i < count; ++i) {
        auto const member = static_cast<unsigned>(i);
        std::int64_t value = 0;  // holds the member's bytes first
        checked(where, "H5Tget_member_value", [&] { return H5Tget_member_value(stored.get(), member, &value); });
        checked(where, "H5Tconvert", [&] { return H5Tconvert(base.get(), H5T_NATIVE_INT64, 1, &value, nullptr, H5P_DEFAULT); });
        std::unique_ptr<char, decltype(&H5free_memory)> const name(H5Tget_member_name(stored.get(), member), H5free_memory);
        members.emplace_back(value, name ? name.get() : "");
    }
    std::sort(members.begin(), members.end());
    return members;
}

}  // namespace muster::hdf5
