// allreduce().wait() beside MPI_Allreduce: the same sums, and what each takes, which is printed and not judged.
// ranks: 2
// alone: what else runs would be measured too
#include <gtest/gtest.h>

#ifdef MUSTER_HAVE_MPI
#include <mpi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <vector>

#include "comm/communicator.hpp"
#include "mpi_test.hpp"

namespace muster::test {

namespace {

double median(std::vector<double>& times) {
    auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
}

/// Median microseconds of {MPI_Allreduce, ours}, the maximum over the ranks; the calls alternate, each after a barrier.
std::array<double, 2> compare(communicator& all, MPI_Comm world, std::size_t bytes, int rounds) {
    std::vector<float> in(bytes / 4), theirs(in.size()), ours(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 1000) + static_cast<float>(all.rank());
    std::array<std::vector<double>, 2> times;
    for (int round = 0; round < rounds; ++round)
        for (std::size_t kind = 0; kind < 2; ++kind) {
            MPI_Barrier(world);
            auto const begin = std::chrono::steady_clock::now();
            if (kind == 0)
                MPI_Allreduce(in.data(), theirs.data(), static_cast<int>(in.size()), MPI_FLOAT, MPI_SUM, world);
            else
                all.allreduce("x", view_of(std::span(in)), view_of(std::span(ours)), reduction::sum).wait();
            times[kind].push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
        }
    EXPECT_EQ(ours, theirs) << bytes;
    std::array<double, 2> medians{median(times[0]), median(times[1])};
    all.allreduce("medians", view_of(std::span(medians)), reduction::max).wait();
    return medians;
}

TEST(latency, of_small_tensors_beside_mpis_blocking_call) {
    auto& all = ranks();
    if (all.backend() != "mpi") GTEST_SKIP() << "no MPI in this world";
    MPI_Comm world = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (all.rank() == 0)
        std::printf("%8s %16s %10s %11s  (median us, f32 sum, %d ranks)\n", "bytes", "MPI_Allreduce", "ours", "difference",
                    all.size());
    for (std::size_t const bytes : {8u, 64u, 512u, 1024u, 2048u, 4096u, 6144u, 8192u, 16384u, 32768u, 65536u, 87040u}) {
        auto const [theirs, ours] = compare(all, world, bytes, bytes < 4000 ? 4000 : 500);
        if (all.rank() == 0) std::printf("%8zu %16.2f %10.2f %+11.2f\n", bytes, theirs, ours, ours - theirs);
    }
    MPI_Comm_free(&world);
}

}  // namespace

}  // namespace muster::test
#endif
