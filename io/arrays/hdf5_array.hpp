// An array inside any HDF5 file: reads it as a source's items.
#pragma once

#include "io/arrays/item_array.hpp"
#include "io/hdf5/hdf5.hpp"

namespace muster {

/// Opened by this process alone. Throws hdf5_error; errc::not_found where there is no such array; errc::invalid_data where its
/// elements are no numbers of ours, lie in another file, or are fewer than its shape promises.
class hdf5_array : public item_array {
  public:
    hdf5_array(std::string const& path, std::string const& object);
    std::string name() const override { return where_.file + ": " + where_.object; }
    std::vector<std::string> files() const override { return {where_.file}; }
    void read(hyperslab rows, std::span<std::uint8_t> out) override;
    std::vector<std::pair<std::int64_t, std::string>> names() const override { return hdf5::enumeration_of(where_, handle_); }

  private:
    hdf5::place where_;
    hdf5::file file_;
    hdf5::dataset handle_;
};

/// Whether an HDF5 file has this array.
bool has_hdf5_array(std::string const& path, std::string const& object);

}  // namespace muster
