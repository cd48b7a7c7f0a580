// One node of the allocation, with what its probe reported.
#pragma once

#include <optional>
#include <string>

#include "launch/wire/node_report.hpp"

namespace muster {

/// One node of the allocation, as the launcher knows it.
struct probed_node {
    std::string name;     ///< as the allocation has it
    std::string address;  ///< likewise
    std::optional<node_report> report;
    std::string silence;        ///< why there is no report
    double clock_ahead_s = 0;   ///< its clock against the launcher's
    double clock_error_s = 0;   ///< what that may be wrong by
    std::string towards;        ///< the node to which it was to connect, where rank 0 would be; empty: none
    std::string connect_fault;  ///< why it could not; empty: it could
    std::optional<int> gpus_expected;
    bool operator==(probed_node const&) const = default;
};

}  // namespace muster
