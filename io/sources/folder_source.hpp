// A folder of pictures by class: reads a folder for each class, or pictures without classes.
#pragma once

#include "io/sources/sample_source.hpp"

namespace muster {

/// Classes are the folders in `folder` that hold pictures, in order of name; a class's samples are its pictures in order of name. A
/// folder that holds pictures itself is one split without labels. All pictures have the size of the first, or are resized by
/// choice; as many channels as the first has, or as are chosen. Names that begin with a dot and files that end in none of .png, .jpg,
/// .jpeg are passed over.
class folder_source : public sample_source {
  public:
    folder_source(std::string folder, source_options const& options);
    std::vector<std::string> files() const override;
    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override;

    /// Files that were passed over.
    std::size_t passed_over() const noexcept { return passed_over_; }

  private:
    void find_pictures(std::string const& folder, std::uint32_t label);
    void read_one(std::size_t sample, std::span<std::uint8_t> out);

    std::string folder_;
    struct entry {
        std::string name;  ///< below the folder
        std::uint32_t label = 0;
    };
    std::vector<entry> pictures_;
    bool resize_ = false;
    bool gray_by_first_ = false;  ///< one channel since the first picture is gray, not by choice
    std::size_t passed_over_ = 0;
    std::vector<std::uint8_t> bytes_;
};

/// Whether a folder holds pictures, or folders that do: one of these is looked into.
bool has_pictures(std::string const& folder);

}  // namespace muster
