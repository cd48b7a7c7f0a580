// The fixture of tests in tests/mpi: one communicator over all ranks, made by the main.
#pragma once

#include "comm/communicator.hpp"

namespace muster::test {

/// All ranks; lives until the program ends. Every rank runs the same tests in the same order.
communicator& ranks();

}  // namespace muster::test
