// CIFAR-10 and CIFAR-100 in their binary version: reads records of labels and 32 x 32 RGB planes.
//
//   CIFAR-10   a record is 1 byte of label and 3,072 of the image; data_batch_1.bin … data_batch_5.bin, test_batch.bin
//   CIFAR-100  a record is the coarse label, the fine label and 3,072 bytes; train.bin, test.bin
// Source: the page of the CIFAR datasets by Krizhevsky, "Binary version".
#pragma once

#include "base/unique_fd.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

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

}  // namespace muster
