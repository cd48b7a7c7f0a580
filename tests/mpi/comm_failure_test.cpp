// What the ranks hear when something goes wrong among them.
// ranks: 1 2 3 4
// alone: where a rank comes more than 3 s late, operations are given up and MPI is left unfinalised
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "comm/fail_together.hpp"
#include "mpi_test.hpp"
#include "tests/thrown_message.hpp"

namespace muster::test {

namespace {

using testing::HasSubstr;

communicator another(identity const& who = ranks().who(), int direct_ranks = 16) {
    comm_options options = ranks().options();
    options.backend = ranks().backend();
    options.direct_ranks = direct_ranks;
    return communicator::create(who, options);
}

/// How a child that does this and then exits ends, with all destructors of its program.
int status_of_child(std::function<void()> const& body) {
    pid_t const child = ::fork();
    if (child == 0) {
        ::alarm(20);
        body();
        ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
}

TEST(failure, a_forked_child_is_refused_and_does_not_wait) {
    auto used = std::make_unique<communicator>(another());
    std::vector<float> values(4, 1);
    auto const view = view_of(std::span(values));
    int const status = status_of_child([&] {
        EXPECT_THAT(message_of(errc::usage, [&] { used->allreduce("w", view, reduction::sum).wait(); }), HasSubstr("forked"));
        EXPECT_THAT(message_of(errc::usage, [&] { used->barrier().wait(); }), HasSubstr("forked"));
        EXPECT_THAT(message_of(errc::usage, [&] { used->close(); }), HasSubstr("forked"));
        used.reset();
    });
    EXPECT_EQ(status, 0);
    used->allreduce("w", view, reduction::sum).wait();
    EXPECT_EQ(values[3], static_cast<float>(ranks().size()));
    used->close();
}

TEST(failure, a_world_of_another_size_is_told_on_all_ranks) {
    if (ranks().backend() != "mpi") GTEST_SKIP() << "self asks no one";
    identity who = ranks().who();
    who.world_size += 3;
    auto const message = message_of(errc::singleton, [&] { another(who); });
    EXPECT_THAT(message, HasSubstr("MPI came up with a world of " + std::to_string(ranks().size()) + " rank(s)"));
    EXPECT_THAT(message, HasSubstr("there are " + std::to_string(who.world_size)));
    EXPECT_THAT(message, HasSubstr(who.host));
}

TEST(failure, one_rank_of_another_job_is_told_on_all_ranks) {
    if (ranks().size() == 1) GTEST_SKIP() << "needs two ranks";
    if (ranks().backend() == "shm") GTEST_SKIP() << "those of another job meet elsewhere";
    identity who = ranks().who();
    if (who.rank == 1) who.nspace += "x";
    EXPECT_THAT(message_of(errc::peer_failed, [&] { another(who); }),
                HasSubstr("rank 1 on " + ranks().host_of(1) + " belongs to another job"));
}

TEST(failure, one_rank_that_counts_otherwise_is_told_on_all_ranks) {
    if (ranks().size() == 1) GTEST_SKIP() << "needs two ranks";
    if (ranks().backend() == "shm") GTEST_SKIP() << "tests/unit/comm/shm_rendezvous_test.cpp has it";
    if (ranks().backend() == "tcp") GTEST_SKIP() << "PMIx knows better";
    identity who = ranks().who();
    if (who.rank == 1) who.world_size += 1;
    EXPECT_THAT(message_of(errc::singleton, [&] { another(who); }), HasSubstr("MPI came up"));
}

TEST(failure, ranks_follow_the_identity_where_mpi_counts_otherwise) {
    if (ranks().backend() == "tcp") GTEST_SKIP() << "PMIx knows better";
    identity who = ranks().who();
    who.rank = who.world_size - 1 - who.rank;
    auto reversed = another(who);
    std::vector<std::int32_t> order(static_cast<std::size_t>(who.world_size));
    std::int32_t const mine = reversed.rank();
    reversed.allgather("ranks", input_of(std::span(&mine, 1)), view_of(std::span(order))).wait();
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], static_cast<std::int32_t>(i));
}

/// Rank 0 waits for the others, who come only after its deadline has passed.
void expect_deadline(communicator victims) {
    std::vector<float> values(1000, 1.0f);
    auto const view = view_of(std::span(values));
    if (ranks().rank() != 0) {
        ranks().barrier().wait();
        victims.allreduce("late.weight", view, reduction::sum).wait();  // rank 0 had started it before
        ranks().barrier().wait();
        return;
    }
    auto const message =
        message_of(errc::timeout, [&] { victims.allreduce("late.weight", view, reduction::sum).wait(duration{0.05}); });
    EXPECT_THAT(message, HasSubstr("allreduce of \"late.weight\" (rank 0 of " + std::to_string(ranks().size()) + " on " +
                                   ranks().who().host));
    EXPECT_THAT(message, HasSubstr("not finished within 50 ms"));
    EXPECT_THAT(message_of(errc::peer_failed, [&] { victims.barrier().wait(); }),
                HasSubstr("the communicator failed before: allreduce of \"late.weight\""));
    ranks().barrier().wait();
    ranks().barrier().wait();
}

TEST(failure, a_deadline_that_passes_names_tensor_rank_and_host) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to wait for";
    expect_deadline(another());
}

/// Writing to a rank that is gone must not end this one, nor what it starts be deaf to it.
TEST(failure, a_connection_that_breaks_does_not_end_the_process) {
    if (ranks().backend() != "mpi") GTEST_SKIP() << "it has no connections";
    ::raise(SIGPIPE);
    struct sigaction now {};
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &now), 0);
    EXPECT_NE(now.sa_handler, SIG_IGN);
}

TEST(failure, a_barrier_has_a_deadline_too_and_may_end_after_it) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to wait for";
    auto victims = another();
    if (ranks().rank() == 0) {
        EXPECT_THAT(message_of(errc::timeout, [&] { victims.barrier().wait(duration{0.05}); }), HasSubstr("barrier (rank 0 of"));
    }
    ranks().barrier().wait();
    if (ranks().rank() != 0) victims.barrier().wait();
    ranks().barrier().wait();
}

TEST(failure, operations_left_behind_by_a_failure_do_not_wait) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to wait for";
    std::vector<std::vector<float>> values(5, std::vector<float>(100, 1.0f));
    auto victims = another();
    if (ranks().rank() == 0) {
        std::vector<operation> started;
        for (auto& each : values) started.push_back(victims.allreduce("left", view_of(std::span(each)), reduction::sum));
        EXPECT_THROW(started[2].wait(duration{0.02}), comm_error);
        started.clear();  // would hang here, or for the communicator's deadline
        ranks().barrier().wait();
    } else {
        ranks().barrier().wait();
        // Over shm a rank that gave up goes on with nothing that it had started: the others are told instead of waiting.
        bool const told = ranks().backend() == "shm";
        for (std::size_t i = 0; i < values.size(); ++i) {
            auto const reduce = [&] { victims.allreduce("left", view_of(std::span(values[i])), reduction::sum).wait(); };
            if (told && i > 0)
                EXPECT_THROW(reduce(), comm_error);
            else
                reduce();
        }
    }
    ranks().barrier().wait();
}

TEST(failure, tensors_of_different_size_are_an_error_and_not_a_wrong_sum) {
    if (ranks().size() == 1) GTEST_SKIP() << "nobody to differ from";
    for (std::size_t const count : {10u, 3000u, 20000u, 4000000u}) {
        auto victims = another();
        std::vector<float> values(count + (ranks().rank() == 0 ? 1 : 0), 1.0f);
        auto const message = message_of(
            errc::peer_failed, [&] { victims.allreduce("w", view_of(std::span(values)), reduction::sum).wait(duration{60}); });
        EXPECT_THAT(message, HasSubstr("is at another collective: the tensor has another size, type, reduction or factor there"));
        ranks().barrier().wait();
    }
}

TEST(failure, agreement_names_the_failed_ranks_on_every_rank) {
    auto& all = ranks();
    int const last = all.size() - 1;
    throw_if_any_failed(all, "nothing", std::optional<own_failure>{});
    std::optional<own_failure> failure;
    if (all.rank() == last) failure = {errc::invalid_data, "train.h5: checksum 1 is not 2"};
    auto const message = message_of(errc::invalid_data, [&] { throw_if_any_failed(all, "opening train.h5", failure); });
    EXPECT_THAT(message, HasSubstr("opening train.h5 failed on 1 of " + std::to_string(all.size()) + " ranks:"));
    EXPECT_THAT(message,
                HasSubstr("\n  rank " + std::to_string(last) + " (" + all.host_of(last) + "): train.h5: checksum 1 is not 2"));
}

TEST(failure, agreement_when_all_fail_with_messages_of_different_length) {
    auto& all = ranks();
    std::string const mine = "r" + std::string(static_cast<std::size_t>(all.rank()) * 3000, 'x') + "!";
    auto const message = message_of(errc::io, [&] { run_on_all(all, "writing", [&]() -> int { throw error(errc::io, mine); }); });
    EXPECT_THAT(message, HasSubstr("writing failed on " + std::to_string(all.size()) + " of"));
    EXPECT_THAT(message, HasSubstr("rank 0 (" + all.host_of(0) + "): r!"));
    EXPECT_LT(message.size(), static_cast<std::size_t>(all.size()) * 4300);
    EXPECT_EQ(run_on_all(all, "counting", [&] { return all.rank(); }), all.rank());
}

}  // namespace

}  // namespace muster::test
