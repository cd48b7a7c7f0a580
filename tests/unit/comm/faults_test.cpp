// What survivors hear when a rank is killed or stopped, over shared memory and over TCP: ranks are children of this process, without MPI and without a
// launcher.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "ranks_as_children.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

/// A tensor in memory that the ranks share, or in one's own.
struct tensor {
    tensor(communicator& all, std::size_t count, bool shares) {
        if (shares)
            shared = all.allocate(count * sizeof(float));
        else
            own.resize(count);
        values = shares ? shared.as<float>() : std::span(own);
    }
    comm_buffer shared;
    std::vector<float> own;
    std::span<float> values;
};

/// The way of one test.
struct way {
    std::string backend;
    int direct_ranks;
};
std::ostream& operator<<(std::ostream& to, way const& what) {
    return to << what.backend << what.direct_ranks;
}

communicator make(way const& by, identity const& who, address_board const& board, double deadline_s) {
    comm_options options = options_of(by.backend, who, board, deadline_s);
    options.direct_ranks = by.direct_ranks;
    return communicator::create(who, options);
}

/// Allreduces of `count` elements; the victim does `harm` to itself before one of them. Ends by an error, or never.
void reduce_until(communicator all, std::size_t count, int victim, int harm) {
    bool const shares = count % 2 == 1;
    tensor const in_tensor(all, count, shares), out_tensor(all, count, shares);
    auto const in = in_tensor.values, out = out_tensor.values;
    std::fill(in.begin(), in.end(), 1.0f);
    for (int turn = 0; turn < 10; ++turn) {
        if (turn == 7 && all.rank() == victim) ::raise(harm);
        all.allreduce("w", view_of(in), view_of(out), reduction::sum).wait();
        // No result of a failed step may be handed out as good.
        for (float const each : out)
            if (each != static_cast<float>(all.size())) throw std::runtime_error("a wrong sum");
    }
}

void expect_survivors_name(way const& by, int victim, int size, std::size_t count, int harm) {
    auto const begin = std::chrono::steady_clock::now();
    // Who has no processor for so long on a busy machine is late as well.
    double const deadline_s = harm == SIGKILL ? 60 : 2;
    address_board const board;
    ranks_as_children ranks(size,
                            [&](identity const& who) { reduce_until(make(by, who, board, deadline_s), count, victim, harm); });
    for (int rank = 0; rank < size; ++rank) {
        if (rank == victim) continue;
        auto const words = ranks.words_of(rank);
        EXPECT_THAT(words, HasSubstr(fmt::format("culprits: {} ", victim))) << "rank " << rank;
        EXPECT_THAT(words, HasSubstr(fmt::format("process {}", ranks.pid(victim))));
        EXPECT_THAT(words, HasSubstr(harm == SIGKILL ? "gone" : "stopped"));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50)) << "long before the deadline";
}

class faults : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(by, faults, testing::Values(way{"shm", 16}, way{"tcp", 16}, way{"tcp", 0}),
                         [](auto const& one) { return fmt::format("{}{}", one.param.backend, one.param.direct_ranks); });

TEST_P(faults, a_killed_rank_is_named_by_all_survivors) {
    for (std::size_t const count : {2u, 100000u, 3000000u, 1000001u})
        for (int const victim : {0, 2}) expect_survivors_name(GetParam(), victim, 3, count, SIGKILL);
}

TEST_P(faults, a_stopped_rank_is_named_by_all_survivors_at_the_deadline) {
    for (std::size_t const count : {2u, 100000u, 3000000u, 1000001u}) expect_survivors_name(GetParam(), 1, 3, count, SIGSTOP);
}

/// At any moment: within a collective too.
TEST_P(faults, a_rank_killed_or_stopped_at_any_moment_leaves_nobody_hanging) {
    for (int turn = 0; turn < 12; ++turn) {
        int const victim = turn % 3, harm = turn % 2 == 0 ? SIGKILL : SIGSTOP;
        std::size_t const count = turn % 4 < 2 ? 1000000 : 300;
        bool const shares = turn % 4 == 1;
        address_board const board;
        ranks_as_children ranks(3, [&](identity const& who) {
            auto all = make(GetParam(), who, board, harm == SIGKILL ? 60 : 1.5);
            tensor const in(all, count, shares), out(all, count, shares);
            for (;;) all.allreduce("w", view_of(in.values), view_of(out.values), reduction::sum).wait();
        });
        if (GetParam().backend == std::string("tcp")) board.await(3);
        ::usleep(static_cast<useconds_t>(30000 + turn * 7919 % 20000));  // not for an event: for a moment that nobody chose
        ::kill(ranks.pid(victim), harm);
        for (int rank = 0; rank < 3; ++rank)
            if (rank != victim) {
                // Perhaps beside the other survivor: its word is lost where it comes after the rest of a message that this rank, without a processor, does not read in time.
                EXPECT_THAT(ranks.words_of(rank), testing::ContainsRegex(fmt::format("culprits: ([0-2] )*{} ", victim)));
            }
    }
}

TEST_P(faults, a_rank_that_left_is_told_to_those_who_need_it) {
    address_board const board;
    ranks_as_children ranks(2, [&](identity const& who) {
        auto all = make(GetParam(), who, board, 20);
        all.barrier().wait();
        if (who.rank == 0) all.barrier().wait();
        if (who.rank == 1) {
            auto other = std::move(all);  // ends it
        }
    });
    EXPECT_THAT(ranks.words_of(0), HasSubstr("culprits: 1 "));
    EXPECT_EQ(ranks.words_of(1), "fine");
}

TEST_P(faults, the_victim_of_a_late_rank_is_not_blamed) {
    // Rank 2 is late; rank 1 gives up first, and rank 0, which needs rank 1, must still name rank 2.
    address_board const board;
    ranks_as_children ranks(3, [&](identity const& who) {
        auto all = make(GetParam(), who, board, who.rank == 1 ? 2 : 60);
        std::vector<float> values(1000000, 1.0f);
        if (who.rank == 2)
            for (;;) ::pause();
        all.allreduce("w", view_of(std::span(values)), reduction::sum).wait();
    });
    EXPECT_THAT(ranks.words_of(1),
                testing::AllOf(HasSubstr("timeout"), HasSubstr("culprits: 2 "),
                               HasSubstr(GetParam().backend == "shm" ? "is 1 collective behind this one" : "nothing has come from it")));
    ::kill(ranks.pid(2), SIGKILL);
    EXPECT_THAT(ranks.words_of(0), HasSubstr("culprits: 2 "));
}

TEST(shm_faults, nothing_is_left_in_the_file_system) {
    auto const count = [] {
        std::size_t found = 0;
        for (auto const& each : std::filesystem::directory_iterator("/dev/shm"))
            if (each.path().filename().string().find("muster-shm") != std::string::npos) ++found;
        return found;
    };
    ranks_as_children ranks(2, [&](identity const& who) {
        auto all = communicator::create(who, options_with(20));
        tensor const shared(all, 100000, true);
        all.allreduce("w", view_of(shared.values), reduction::sum).wait();
        ::raise(SIGKILL);
    });
    ranks.words_of(0);
    ranks.words_of(1);
    EXPECT_EQ(count(), 0u);
}

}  // namespace
}  // namespace muster
