// A folder of pictures by class: reads a folder for each class, or pictures without classes.
#pragma once

#include <utility>

#include "io/sources/image_file.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

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
