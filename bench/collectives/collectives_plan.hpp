// The plan of `muster-bench collectives`: reads the options into cases, sizes and contenders.
#pragma once

#include <string>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/units.hpp"
#include "bench/collectives/collectives_case.hpp"

namespace muster {

struct collectives_plan {
    std::vector<collective_case> cases;
    std::vector<std::size_t> sizes;              ///< bytes of a tensor; empty with gradients
    std::vector<std::size_t> gradient_elements;  ///< of each tensor
    std::string gradients;                       ///< the set's name and source
    std::vector<int> ranks;
    int repeats = 7;
    int nodes = 1;  ///< that the hierarchical backend's ranks pretend to be on
    std::vector<std::string> backends, peers;
    bool plain = true;      ///< muster's own in plain memory
    bool allocated = true;  ///< … in memory from communicator::allocate(), those that share it
    std::string muster, self, python, json, csv;
    duration time{};                  ///< no further sizes of a table after this
    std::string pair;                 ///< "" for the first and the last rank, or "none"
    std::string least, most, factor;  ///< of the sizes, as given
};

/// Reads the options of collectives_row. Throws errc::usage, errc::not_found where there is no launcher.
collectives_plan read_collectives_plan(given_options const& given);

/// The tensors that are measured, each set in bytes, as they fit the case and the ranks; sizes that become alike come once.
std::vector<std::vector<std::size_t>> tensor_sets(collectives_plan const& what, collective_case const& of, int ranks);

}  // namespace muster
