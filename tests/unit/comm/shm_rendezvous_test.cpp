// The ranks that are named when a rendezvous on a node fails: ranks are children of this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/backend/world_record.hpp"
#include "comm/shm/rendezvous/rendezvous_socket.hpp"
#include "comm/shm/rendezvous/shm_rendezvous.hpp"
#include "ranks_as_children.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

void end_in(std::chrono::microseconds time) {
    itimerval const once{{0, 0}, {0, static_cast<suseconds_t>(time.count())}};
    ::setitimer(ITIMER_REAL, &once, nullptr);  // SIGALRM, which nobody handles
}

TEST(shm_rendezvous, a_rank_that_never_comes_is_named) {
    ranks_as_children ranks(3, [&](identity const& who) {
        if (who.rank == 1) return;
        communicator::create(who, options_with(2));
    });
    for (int const rank : {0, 2})
        EXPECT_THAT(ranks.words_of(rank),
                    AllOf(HasSubstr("timeout"), HasSubstr("culprits: 1 "), HasSubstr("rank 1 on here did not come within 2 s")));
}

TEST(shm_rendezvous, a_rank_stopped_on_its_way_is_named) {
    ranks_as_children ranks(3, [&](identity const& who) {
        if (who.rank == 2) ::raise(SIGSTOP);
        communicator::create(who, options_with(2));
    });
    for (int const rank : {0, 1}) EXPECT_THAT(ranks.words_of(rank), AllOf(HasSubstr("timeout"), HasSubstr("culprits: 2 ")));
}

TEST(shm_rendezvous, without_rank_0_the_others_say_so) {
    ranks_as_children ranks(3, [&](identity const& who) {
        if (who.rank != 0) communicator::create(who, options_with(2));
    });
    for (int const rank : {1, 2})
        EXPECT_THAT(ranks.words_of(rank), AllOf(HasSubstr("culprits: 0 "), HasSubstr("rank 0 on here did not come within 2 s")));
}

TEST(shm_rendezvous, rank_0_stopped_while_the_others_wait_for_it_is_named) {
    ranks_as_children ranks(3, [&](identity const& who) {
        if (who.rank == 2) {
            ::pause();
        } else if (who.rank == 0) {
            ::signal(SIGALRM, [](int) { ::raise(SIGSTOP); });
            end_in(std::chrono::milliseconds(100));
        }
        communicator::create(who, options_with(2));
    });
    EXPECT_THAT(ranks.words_of(1), AllOf(HasSubstr("timeout"), HasSubstr("culprits: 0 ")));
}

/// The first deadline ends it for all, and blames whoever is missing: not rank 0, which waits as well.
TEST(shm_rendezvous, a_rank_with_a_shorter_deadline_is_told_who_is_missing) {
    ranks_as_children ranks(3, [&](identity const& who) {
        if (who.rank == 2) ::pause();
        communicator::create(who, options_with(who.rank == 1 ? 2 : 60));
    });
    for (int const rank : {0, 1}) EXPECT_THAT(ranks.words_of(rank), AllOf(HasSubstr("timeout"), HasSubstr("culprits: 2 ")));
}

/// The rendezvous has failed, and rank 0 gone on to something else, by the time that rank 2 comes.
TEST(shm_rendezvous, a_rank_that_comes_after_the_failure_is_told_why) {
    auto [wait_2, go_2] = make_pipe();
    auto [wait_0, go_0] = make_pipe();
    auto const wait_for = [](unique_fd& go, unique_fd& wait) {
        go.reset();
        char end = 0;
        [[maybe_unused]] auto const got = ::read(wait.get(), &end, 1);
    };
    ranks_as_children ranks(3, [&](identity const& who) {
        if (who.rank == 1) end_in(std::chrono::milliseconds(50));
        if (who.rank == 2) {
            go_0.reset();
            wait_for(go_2, wait_2);
        }
        auto const said = message_of_failure([&] { communicator::create(who, options_with(2)); });
        if (who.rank == 0) {
            go_2.reset();
            wait_for(go_0, wait_0);
        }
        throw std::runtime_error(said);
    });
    go_2.reset();  // rank 0 alone holds it now
    EXPECT_THAT(ranks.words_of(2), HasSubstr("culprits: 1 "));
    go_0.reset();
    EXPECT_THAT(ranks.words_of(0), HasSubstr("culprits: 1 "));
}

TEST(shm_rendezvous, ranks_that_count_otherwise_are_told_on_all_ranks) {
    ranks_as_children ranks(3, [&](identity who) {
        if (who.rank == 2) who.world_size = who.local_size = 4;
        communicator::create(who, options_with(20));
    });
    for (int const rank : {0, 1, 2})
        EXPECT_THAT(ranks.words_of(rank), HasSubstr("rank 2 on here says that there are 4 ranks, rank 0 says 3"));
}

// A name that is bound and never answers: another user's, as far as ranks can tell.
shm::rendezvous_request rendezvous_of(std::string const& key, int rank) {
    identity who;
    who.rank = rank;
    who.world_size = who.local_size = 2;
    who.host = "here";
    return {key, describe_world(who, {}), "here", duration{20}, 4096};
}

TEST(shm_rendezvous, a_name_that_another_holds_is_passed_over_by_all_ranks) {
    std::string const key = "muster-rendezvous-held-" + std::to_string(::getpid());
    auto const first = shm::make_socket(), second = shm::make_socket();
    ASSERT_EQ(shm::bind_to(first.get(), key), 0);
    ASSERT_EQ(shm::bind_to(second.get(), shm::name_to_try(key, 1)), 0);
    ranks_as_children ranks(2, [&](identity const& who) { shm::shm_rendezvous(rendezvous_of(key, who.rank)).all_say_yes(true); });
    EXPECT_EQ(ranks.words_of(0), "fine");
    EXPECT_EQ(ranks.words_of(1), "fine");
}

TEST(shm_rendezvous, a_name_that_this_users_other_rank_0_holds_is_an_error) {
    std::string const key = "muster-rendezvous-twice-" + std::to_string(::getpid());
    auto const first = shm::make_socket();
    ASSERT_EQ(shm::bind_to(first.get(), key), 0);
    ASSERT_EQ(::listen(first.get(), 4), 0);
    EXPECT_THAT(message_of_failure([&] { shm::shm_rendezvous(rendezvous_of(key, 0)); }),
                HasSubstr("another rank 0 of the same job step has it"));
}

// A reason without its last zero is not read beyond its end.
TEST(rendezvous_socket, a_reason_without_its_end_ends_with_the_message) {
    auto message = shm::refusal(errc::timeout, "", {});
    message.why.fill('x');
    EXPECT_EQ(message_of_failure([&] { shm::throw_if_failed(message); }),
              "timeout culprits: " + std::string(message.why.size(), 'x'));
}

// ---- the sockets

struct two_ends {
    unique_fd listener = shm::make_socket(), mine = shm::make_socket();
    shm::accepted theirs;
    explicit two_ends(std::optional<int> rank) {
        std::string const key = "muster-rendezvous-test-" + std::to_string(::getpid());
        EXPECT_EQ(shm::connect_to(mine.get(), key), ECONNREFUSED);
        EXPECT_EQ(shm::bind_to(listener.get(), key), 0);
        EXPECT_EQ(::listen(listener.get(), 4), 0);
        if (rank) {
            EXPECT_EQ(shm::bind_to(mine.get(), key, *rank), 0);
        }
        EXPECT_EQ(shm::connect_to(mine.get(), key), 0);
        theirs = shm::accept_from(listener.get(), key);
    }
};

TEST(rendezvous_socket, tells_which_rank_connected_before_its_first_message) {
    EXPECT_EQ(two_ends(17).theirs.rank, 17);
    EXPECT_EQ(two_ends(std::nullopt).theirs.rank, std::nullopt);
}

TEST(rendezvous_socket, the_last_message_arrives_from_an_end_that_left_without_reading) {
    two_ends ends(3);
    EXPECT_TRUE(shm::send_message(ends.mine.get(), shm::rendezvous_message{}));
    EXPECT_TRUE(shm::send_message(ends.theirs.socket.get(), shm::refusal(errc::timeout, "rank 2 is late", std::array{2})));
    ends.theirs.socket.reset();
    shm::rendezvous_message received;
    ASSERT_TRUE(shm::receive_message(ends.mine.get(), received));
    EXPECT_FALSE(shm::receive_message(ends.mine.get(), received));
    try {
        shm::throw_if_failed(received);
        ADD_FAILURE() << "nothing was thrown";
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::timeout);
        EXPECT_STREQ(problem.what(), "rank 2 is late");
        EXPECT_EQ(problem.culprits(), std::vector<int>{2});
    }
}

TEST(rendezvous_socket, a_rank_that_does_not_read_holds_nobody_up) {
    two_ends ends(3);
    shm::limit_sending(ends.theirs.socket.get(), 0.02);
    int sent = 0;
    while (sent < 100'000 && shm::send_message(ends.theirs.socket.get(), shm::rendezvous_message{})) ++sent;
    EXPECT_LT(sent, 100'000);
}

}  // namespace
}  // namespace muster
