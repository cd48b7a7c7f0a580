// Ranks of which one computes longer than the others before each collective.
//   straggler comm|exchange RANK MILLISECONDS FILE
// They go on until FILE is there; RANK -1: none is late.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "comm/communicator.hpp"
#include "comm/exchange/exchange.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "pmix/identity.hpp"

namespace {

using namespace muster;

/// Runs `reduce`, which replaces the values by their maxima over all ranks, until a rank has seen the file.
template <typename Reduce>
void step_until(std::string const& file, bool is_late, useconds_t late_us, Reduce const& reduce) {
    std::vector<float> values(20'000);
    do {
        std::ranges::fill(values, ::access(file.c_str(), F_OK) == 0 ? 1.0f : 0.0f);
        ::usleep(is_late ? late_us : 500);
        reduce(view_of(std::span(values)));
    } while (values.front() == 0);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    auto const variables = environment::capture();
    identity const who = identify(variables);
    auto const options = read_exchange_options(variables);
    bool const is_late = who.rank == std::atoi(argv[2]);
    auto const late_us = static_cast<useconds_t>(std::atoi(argv[3])) * 1000;
    if (std::string(argv[1]) == "comm") {
        auto all = communicator::create(who, options.comm);
        step_until(argv[4], is_late, late_us, [&](tensor_view values) { all.allreduce("values", values, reduction::max).wait(); });
        all.close();
    } else {
        exchange by(who, options);
        step_until(argv[4], is_late, late_us, [&](tensor_view values) { by.allreduce("values", values, values, reduction::max).wait(); });
    }
}
