// The main of tests on the real NCCL: all ranks run the same tests; a failure of any is a failure of the job. Skips (77), saying
// why, where NCCL, the driver or a GPU is missing. Each rank calls itself another host to NCCL, so that several may share one
// GPU.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "nccl_test.hpp"
#include "pmix/identity.hpp"

namespace muster::test {

namespace {

identity this_rank;
comm_options options;
std::optional<communicator> all_ranks;
std::shared_ptr<cuda::device const> chosen;

int run(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    environment const variables = environment::capture();
    this_rank = identify(variables);
    init_log("warning", this_rank.host, this_rank.rank);
    ::setenv("NCCL_HOSTID", ("muster-test-" + std::to_string(this_rank.rank)).c_str(), 1);
    ::setenv("NCCL_NET", "Socket", 1);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    ::setenv("NCCL_IB_DISABLE", "1", 1);
    options.backend = "nccl";
    options.memory = memory_kind::device;
    options.deadline = duration{60};
    if (auto const why = nccl_unavailable(this_rank, options)) {
        std::printf("SKIPPED: %s\n", why->c_str());
        std::fflush(stdout);
        return 77;
    }
    auto const& found = cuda::find_driver();
    options.device = variables.get_int("MUSTER_GPU_INDEX").value_or(this_rank.local_rank % found.devices);
    chosen = cuda::device::open(found, options.device);
    std::printf("rank %d of %d on GPU %d: %s (%s)\n", this_rank.rank, this_rank.world_size, options.device,
                chosen->name().c_str(), chosen->uuid().c_str());
    all_ranks.emplace(communicator::create(this_rank, options));
    int const result = RUN_ALL_TESTS();
    all_ranks.reset();
    chosen.reset();
    return result;
}

}  // namespace

communicator& ranks() {
    return *all_ranks;
}

identity const& who() {
    return this_rank;
}

void make_anew() {
    struct dropper {
        ~dropper() { all_ranks.reset(); }
    };
    try {
        dropper const at_the_end;
        throw std::runtime_error("as a rank that fails drops it");
    } catch (std::runtime_error const&) {  // nothing else is thrown
    }
    all_ranks.emplace(communicator::create(this_rank, options));
}

std::shared_ptr<cuda::device const> const& gpu() {
    return chosen;
}

}  // namespace muster::test

int main(int argc, char** argv) {
    try {
        return muster::test::run(argc, argv);
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        std::_Exit(125);  // no destructor may wait for the other ranks now
    }
}
