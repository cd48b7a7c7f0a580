// The names in a dataset file; docs/dataset-format.md explains them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "io/dataset/image_shape.hpp"
#include "io/hdf5/element_type.hpp"

namespace muster::format {

inline constexpr std::string_view name = "muster.dataset";
inline constexpr std::uint64_t newest_version = 3;
inline constexpr std::string_view checksum_algorithm = "xxh3-64, seed 0, of the little-endian xxh3-64 of each block";

// Attributes of the root.
inline constexpr char const* format_attribute = "format";
inline constexpr char const* version_attribute = "format_version";
inline constexpr char const* name_attribute = "name";
inline constexpr char const* created_by_attribute = "created_by";
inline constexpr char const* command_attribute = "command";

// Attributes of a split's group.
inline constexpr char const* split_attribute = "split";
inline constexpr char const* classes_attribute = "classes";
inline constexpr char const* label_type_attribute = "label_type";
inline constexpr char const* class_names_attribute = "class_names";
inline constexpr char const* columns_attribute = "columns";
inline constexpr char const* source_images_attribute = "source_images";
inline constexpr char const* source_labels_attribute = "source_labels";
inline constexpr char const* algorithm_attribute = "checksum_algorithm";
inline constexpr char const* block_attribute = "checksum_block_samples";
inline constexpr char const* image_checksum_attribute = "checksum_images";
inline constexpr char const* label_checksum_attribute = "checksum_labels";
inline constexpr char const* sources_attribute = "sources";
inline constexpr char const* least_attribute = "value_min";
inline constexpr char const* most_attribute = "value_max";

// Datasets of a split's group.
inline constexpr char const* images = "images";
inline constexpr char const* labels = "labels";
inline constexpr char const* image_blocks = "image_checksums";
inline constexpr char const* label_blocks = "label_checksums";

/// Samples in one block of checksums: as many whole samples as fit 1 MiB, at least one.
inline std::size_t block_samples(std::size_t sample_bytes) {
    return std::max<std::size_t>(1, (std::size_t{1} << 20) / std::max<std::size_t>(1, sample_bytes));
}

inline std::size_t block_count(std::size_t samples, std::size_t block) {
    return samples / block + (samples % block != 0 ? 1 : 0);
}

/// The smallest unsigned type that holds every label below `classes`; nothing for 0, samples without labels.
inline std::optional<element_type> label_type(std::size_t classes) {
    if (classes == 0) return std::nullopt;
    if (classes <= 256) return element_type::u8;
    return classes <= 65536 ? element_type::u16 : element_type::u32;
}

/// The lowest version that can say this, so that older readers take what they can.
inline std::uint64_t version_for(image_shape const& shape, element_type type, std::optional<element_type> label) {
    if (shape.is_row || label == element_type::f32) return 3;
    return type == element_type::u8 && label == element_type::u8 ? 1 : 2;
}

}  // namespace muster::format
