// Samples and labels in two arrays: makes a source of them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "io/arrays/item_array.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

using array_opener = std::function<std::unique_ptr<item_array>()>;

/// Samples of up to three dimensions; one of one dimension is a row, one of two a plane. Labels are whole numbers, of any type, or
/// targets; those of an HDF5 enumeration are named by it.
class array_source : public sample_source {
  public:
    /// `open_labels` is null where there are none. Throws what the openers throw, and source_error.
    array_source(array_opener const& open_images, array_opener open_labels, dimension_order order);

    std::vector<std::string> files() const override;
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override;
    void finish() override;
    label_scan scan_labels() override;
    void take_targets() override { targets_ = true; }
    [[noreturn]] void fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const override;

  private:
    void set_shape(dimension_order order);
    std::uint32_t class_by_name(double value, std::size_t item) const;

    std::unique_ptr<item_array> images_;
    std::unique_ptr<item_array> labels_;
    array_opener open_labels_;
    bool targets_ = false;
    bool channels_last_ = false;
    std::vector<double> value_of_;  ///< of each class, in order, where an enumeration names them
    std::vector<std::uint8_t> buffer_;
};

}  // namespace muster
