#include "io/arrays/item_array.hpp"

#include <fmt/format.h>

#include "base/throw_error.hpp"
#include "io/arrays/byte_source.hpp"

namespace muster {

namespace {

hdf5::file open_serial(std::string const& path) {
    std::uint64_t bytes = 0;
    open_regular(path, bytes);  // HDF5 reports a missing file only deep in its error stack
    hdf5::place const where{path, ""};
    return hdf5::open_file(where, hdf5::file_access(where, 1, nullptr));
}

}  // namespace

hdf5_array::hdf5_array(std::string const& path, std::string const& object)
    : where_{path, object}, file_(open_serial(path)), handle_(hdf5::open_dataset_at(where_, file_)) {
    hdf5::dataset_form const form = hdf5::form_of(where_, handle_);
    auto const refuse = [&](std::string_view what) {
        throw_error(errc::invalid_data, "{}: {}; give another array, or write this one anew with h5py", name(), what);
    };
    if (auto const why = hdf5::why_not_read(form); !why.empty()) refuse(why);
    auto const type = hdf5::element_of(where_, handle_);
    if (!type) refuse("holds no integers of 1 to 8 bytes, float32 or float64");
    std::uint64_t bytes = bytes_of(*type);
    for (std::uint64_t const size : form.extent)
        if (size == 0 || __builtin_mul_overflow(bytes, size, &bytes)) refuse("has an impossible or empty shape");
    if (form.extent.empty()) refuse("is a single number");
    // Memory is asked for by what the shape promises only if the file really holds it (deflate makes at most 1032 bytes of one).
    if (form.stored_bytes < bytes / (form.filtered ? 1032 : 1))
        refuse(fmt::format("stores {} bytes of the {} that its shape promises", form.stored_bytes, bytes));
    auto meaning = hdf5::meaning_of(where_, handle_);
    if (!meaning.changed_by.empty())
        throw_error(errc::invalid_data,
                    "{}: its values are not the numbers that it stores, as its attributes say ({}), and these are not applied; "
                    "write the values into a new file, as xarray or netCDF4 reads them, without these attributes",
                    name(), meaning.changed_by);
    told_ = std::move(meaning.told);
    set_form({form.extent, *type, false});
}

std::string hdf5_array::note() const {
    if (told_.empty()) return {};
    return fmt::format("{}: its attributes are not applied, and every number is taken as it is: {}", where_.object, told_);
}

void hdf5_array::read(hyperslab rows, std::span<std::uint8_t> out) {
    expect(out.size() == rows.count * item_bytes() && rows.end() <= items(), "rows of the array");
    hdf5::read(where_, handle_, rows, form().type, out.data(), hdf5::transfer(where_, false));
}

bool has_hdf5_array(std::string const& path, std::string const& object) {
    hdf5::file const file = open_serial(path);
    return hdf5::has_dataset({path, object}, file);
}

std::string hdf5_arrays(std::string const& path) {
    hdf5::file const file = open_serial(path);
    return hdf5::arrays_in({path, "/"}, file);
}

}  // namespace muster
