// The fixture of tests on the real NCCL: one communicator over all ranks.
#pragma once

#include "comm/communicator.hpp"
#include "gpu_test.hpp"

namespace muster::test {

communicator& ranks();
identity const& who();

/// Drops the communicator as a rank that unwinds an exception does, so by an abort, and makes another. Collective.
void make_anew();

}  // namespace muster::test
