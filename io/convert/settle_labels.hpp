// The labels of all splits of a conversion: which classes they are, by one rule.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "io/convert/convert.hpp"
#include "io/sources/sample_source.hpp"

namespace muster {

/// A split to convert.
struct opened_split {
    std::string name;
    std::unique_ptr<sample_source> source;
    std::vector<std::uint32_t> renumbered;  ///< the source's label to the dataset's; empty: they are the same
    source_facts const& facts() const { return source->facts(); }
};

/// The first names of many, for a message.
std::string shortened(std::vector<std::string> const& names);

/// The number of classes is an attribute of every split, and known before the first byte is written. Returns whether the labels are targets.
bool settle_labels(convert_request& request, std::vector<opened_split>& splits, communicator& ranks);

}  // namespace muster
