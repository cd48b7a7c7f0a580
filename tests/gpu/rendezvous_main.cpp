// Ranks without MPI meet by PMIx three times, as for three communicators one after the other.
#include <cstdio>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "comm/nccl/rendezvous.hpp"
#include "pmix/identity.hpp"

int main() try {
    auto const who = muster::identify(muster::environment::capture());
    for (int epoch = 0; epoch < 3; ++epoch) {
        std::byte const mine{static_cast<unsigned char>(who.rank + epoch)};
        auto const all = muster::gather_by_pmix(who, "test.epoch." + std::to_string(epoch), {&mine, 1}, muster::duration{30});
        for (int rank = 0; rank < who.world_size; ++rank)
            if (all[static_cast<std::size_t>(rank)] != std::vector{std::byte{static_cast<unsigned char>(rank + epoch)}}) {
                std::printf("rank %d: epoch %d: what rank %d gave is not what came\n", who.rank, epoch, rank);
                return 1;
            }
    }
    return 0;
} catch (std::exception const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
