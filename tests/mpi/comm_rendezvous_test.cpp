// ranks: 1 2 4
// The ranks meet by PMIx, more than once, in a process in which MPI may use PMIx too.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "mpi_test.hpp"

namespace muster {
namespace {

std::vector<std::byte> bytes_of(int rank, std::size_t count) {
    return std::vector<std::byte>(count, static_cast<std::byte>(rank + 1));
}

TEST(gather_by_pmix, every_rank_gets_what_every_rank_gave) {
    identity const& who = test::ranks().who();
    for (int epoch = 1; epoch <= 3; ++epoch) {
        auto const mine = bytes_of(who.rank + epoch, 100 + static_cast<std::size_t>(who.rank));
        auto const all = gather_by_pmix(who, "test.rendezvous." + std::to_string(epoch), mine, duration{30});
        ASSERT_EQ(all.size(), static_cast<std::size_t>(who.world_size));
        for (int rank = 0; rank < who.world_size; ++rank)
            EXPECT_EQ(all[static_cast<std::size_t>(rank)], bytes_of(rank + epoch, 100 + static_cast<std::size_t>(rank)));
    }
}

TEST(gather_by_pmix, a_rank_that_does_not_come_is_waited_for_until_the_deadline) {
    auto& ranks = test::ranks();
    if (ranks.size() == 1) GTEST_SKIP() << "one rank waits for nobody";
    if (ranks.rank() == 0) {
        try {
            static_cast<void>(gather_by_pmix(ranks.who(), "test.rendezvous.alone", bytes_of(0, 8), duration{0.3}));
            ADD_FAILURE() << "nothing was thrown";
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::timeout) << problem.what();
            EXPECT_NE(std::string(problem.what()).find("the ranks did not meet"), std::string::npos) << problem.what();
        }
    }
    ranks.barrier().wait();
    // Now the others come too: the fence that rank 0 gave up would else be taken for its part of the next one, that of MPI_Finalize, and its own part of that
    // would wait for ranks that have left.
    if (ranks.rank() != 0)
        static_cast<void>(gather_by_pmix(ranks.who(), "test.rendezvous.alone", bytes_of(ranks.rank(), 8), duration{60}));
    ranks.barrier().wait();
}

}  // namespace
}  // namespace muster
