// Ranks without MPI meet by PMIx three times, as for three communicators one after the other. Then they ask for a communicator on
// GPUs, of which rank 1 sees none, wherever this runs: all of them hear at once that it cannot be made because of rank 1.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "comm/communicator.hpp"
#include "pmix/identity.hpp"

namespace {

bool all_hear_of_rank_1(muster::identity const& who) {
    muster::comm_options options;
    options.memory = muster::memory_kind::device;
    options.deadline = muster::duration{3600};  // nobody waits for it
    try {
        muster::communicator::create(who, options);
    } catch (muster::comm_error const& problem) {
        auto const& culprits = problem.culprits();
        bool const named = std::find(culprits.begin(), culprits.end(), 1) != culprits.end();
        if (named && std::string(problem.what()).find("rank 1 on ") != std::string::npos) return true;
        std::printf("rank %d heard: %s\n", who.rank, problem.what());
        return false;
    }
    std::printf("rank %d: a communicator was made although rank 1 has no GPU\n", who.rank);
    return false;
}

}  // namespace

int main() try {
    auto const who = muster::identify(muster::environment::capture());
    if (who.rank == 1) ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    for (int epoch = 0; epoch < 3; ++epoch) {
        std::byte const mine{static_cast<unsigned char>(who.rank + epoch)};
        auto const all = muster::gather_by_pmix(who, "test.epoch." + std::to_string(epoch), {&mine, 1}, muster::duration{30});
        for (int rank = 0; rank < who.world_size; ++rank)
            if (all[static_cast<std::size_t>(rank)] != std::vector{std::byte{static_cast<unsigned char>(rank + epoch)}}) {
                std::printf("rank %d: epoch %d: what rank %d gave is not what came\n", who.rank, epoch, rank);
                return 1;
            }
    }
    return all_hear_of_rank_1(who) ? 0 : 1;
} catch (std::exception const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
