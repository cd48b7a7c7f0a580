// Sources of samples that are read from files of other formats: two arrays, CIFAR, a folder of pictures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "io/arrays/item_array.hpp"
#include "io/sources/image_file.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

using array_opener = std::function<std::unique_ptr<item_array>()>;

/// Samples of up to three dimensions; one of one dimension is a row, one of two a plane. Labels are whole numbers, of any type, or
/// targets; those of an HDF5 enumeration are named by it.
class array_source : public sample_source {
  public:
    /// `open_labels` is null if there are no labels. Throws what the openers throw, and source_error.
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

// CIFAR-10 and CIFAR-100 in their binary version: reads records of labels and 32 x 32 RGB planes.
//
//   CIFAR-10   a record is 1 byte of label and 3,072 of the image; data_batch_1.bin … data_batch_5.bin, test_batch.bin
//   CIFAR-100  a record is the coarse label, the fine label and 3,072 bytes; train.bin, test.bin
// Source: the page of the CIFAR datasets by Krizhevsky, "Binary version".

enum class cifar_labels { ten, fine, coarse };

/// The records of several files, one after the other. `class_names` is a file of one name a line; empty: none.
class cifar_source : public sample_source {
  public:
    cifar_source(std::vector<std::string> files, cifar_labels labels, std::string const& class_names);
    std::vector<std::string> files() const override;
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override;
    [[noreturn]] void fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const override;

  private:
    struct part {
        std::string path;
        unique_fd fd;
        hyperslab rows;  ///< of the source
    };
    part const& part_of(std::size_t row) const;

    std::vector<part> parts_;
    std::size_t record_bytes_ = 0;
    std::size_t label_offset_ = 0;
    std::vector<std::uint8_t> buffer_;
};

// A folder of pictures by class: reads a folder for each class, or pictures without classes.

/// Classes are the folders in `folder`, in order of name, as torchvision's ImageFolder takes them: a class's samples are the pictures
/// in its folder and in all folders below, in order of the folder's path, then of name. A class without pictures keeps its number.
/// A folder that holds pictures itself, and none in its folders, is one split without labels. All pictures have the size of the
/// first, or are resized by choice; as many channels as the first has, or as are chosen. What is hidden, and files that end in none of
/// picture_endings, are left out and told by notes().
class folder_source : public sample_source {
  public:
    folder_source(std::string folder, source_options const& options);
    std::vector<std::string> files() const override;
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override;
    void look_at(hyperslab rows, std::span<std::int32_t> damaged) override;
    void leave_out(std::span<std::int32_t const> damaged) override;

  private:
    struct entry {
        std::string name;  ///< below the folder
        std::uint32_t label = 0;
    };
    void find_classes();
    void note_depth();
    void take_form_of_first(source_options const& options);
    picture_header read_file(std::size_t sample);
    void require_form(std::size_t sample, picture_header const& found);
    void note_turned(std::size_t sample, picture_header const& found);
    void read_one(std::size_t sample, std::span<std::uint8_t> out);

    std::string folder_;
    std::vector<entry> pictures_;
    bool resize_ = false;
    bool gray_by_first_ = false;       ///< one channel since the first picture is gray, not by choice
    std::vector<std::uint8_t> bytes_;  ///< of the file read last
};

/// The folders of splits in `folder`, each with the name of its split, which is "train" of "Train" and "training". Empty where it has
/// none, so that its folders are classes. Throws errc::usage where there are such folders and others with pictures next to them, and
/// where one of them holds no picture.
std::vector<std::pair<std::string, std::string>> split_folders(std::string const& folder);

}  // namespace muster
