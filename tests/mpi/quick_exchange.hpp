// The options that tests of the exchange have in common.
#pragma once

#include "comm/exchange/request/exchange_options.hpp"
#include "mpi_test.hpp"

namespace muster::test {

/// Over the ranks' backend, with a short time of gathering.
inline exchange_options quick() {
    exchange_options options;
    options.comm = ranks().options();
    options.comm.backend = ranks().backend();
    options.deadline = duration{30.0};
    options.cycle_time = duration{0.0002};
    return options;
}

}  // namespace muster::test
