// Checked HDF5 calls: turns printing off and a failure into hdf5_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/hdf5/hdf5.hpp"

namespace muster::hdf5 {

/// Turns HDF5's automatic printing off and, when destroyed, back to what it was.
class quiet {
  public:
    quiet() noexcept;
    ~quiet();
    quiet(quiet const&) = delete;
    quiet& operator=(quiet const&) = delete;

  private:
    void* function_ = nullptr;
    void* data_ = nullptr;
};

/// The calling thread's HDF5 error stack in words, innermost cause first.
std::vector<std::string> error_stack();

/// The object `name` inside that of `where`.
inline place within(place const& where, std::string const& name) {
    return {where.file, where.object == "/" || where.object.empty() ? "/" + name : where.object + "/" + name};
}

/// Calls `function` and returns what it returned; throws hdf5_error if that is negative.
template <typename Function>
auto checked(place const& where, std::string_view call, Function&& function) {
    quiet const silence;
    auto const result = function();
    if (result < 0) throw hdf5_error(call, where.file, where.object, error_stack(), static_cast<int>(result));
    return result;
}

/// An attribute that is there.
struct found_attribute {
    attribute handle;
    datatype type;
    dataspace space;
    std::size_t count = 0;  ///< of its elements
};

/// Opens attribute `name` of `object`, if it has one.
std::optional<found_attribute> find_attribute(place const& at, id object, std::string const& name);

/// The space of a dataset's elements, and its extent in each dimension.
dataspace space_of(place const& where, dataset const& handle);
std::vector<std::uint64_t> extent_of(place const& where, dataspace const& space);

}  // namespace muster::hdf5
