// Small allreduces over mpi where all ranks are on one node: through memory, to the bits that messages give, and with their errors.
// ranks: 2 3 4
// alone: where a rank comes more than 3 s late, operations are given up and MPI is left unfinalised
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#ifdef MUSTER_HAVE_MPI
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "comm/backend/comm_error.hpp"
#include "comm/communicator.hpp"
#include "mpi_test.hpp"
#include "tests/thrown_message.hpp"

namespace muster::test {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::atomic<long> messages_sent = 0;

}  // namespace

}  // namespace muster::test

/// Stands for MPI's own in this program.
extern "C" int MPI_Isend(void const* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
    ++muster::test::messages_sent;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

namespace muster::test {

namespace {

communicator another(std::size_t shared_bytes = comm_options{}.shared_bytes) {
    comm_options options = ranks().options();
    options.backend = "mpi";
    options.shared_bytes = shared_bytes;
    return communicator::create(ranks().who(), options);
}

std::vector<float> values_of(std::size_t count, int rank, int seed = 0) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = 1.0f / static_cast<float>(i % 97 + static_cast<std::size_t>(rank * 31 + seed) + 1);
    return values;
}

/// Of a tensor that goes through memory, in bytes.
std::size_t largest() {
    return ranks().size() == 2 ? 32768 : 65536;
}

long messages_of(communicator& all, std::size_t bytes) {
    auto values = values_of(bytes / 4, all.rank());
    long const before = messages_sent;
    for (int i = 0; i < 20; ++i) all.allreduce("x", view_of(std::span(values)), reduction::max).wait();
    return messages_sent - before;
}

TEST(node_memory, takes_small_tensors_and_leaves_larger_ones_to_messages) {
    EXPECT_EQ(messages_of(ranks(), 8), 0);
    EXPECT_EQ(messages_of(ranks(), 488), 0);
    EXPECT_EQ(messages_of(ranks(), largest()), 0);
    EXPECT_GT(messages_of(ranks(), largest() + 4), 0);
    auto plain = another(0);
    EXPECT_GT(messages_of(plain, 8), 0);
    auto least = another(200);
    EXPECT_EQ(messages_of(least, 200), 0);
    EXPECT_GT(messages_of(least, 204), 0);
}

TEST(node_memory, gives_the_bits_that_messages_give) {
    auto plain = another(0);
    for (auto const how : {reduction::sum, reduction::average, reduction::min, reduction::product})
        for (auto const scale : {scaling{}, scaling{0.3, 7}})
            for (std::size_t const count : {1u, 2u, 26u, 122u, 123u, 1000u, 8192u, 8193u, 16384u, 16385u}) {
                auto const in = values_of(count, ranks().rank());
                std::vector<float> ours(count), theirs(count);
                ranks().allreduce("x", input_of(std::span(in)), view_of(std::span(ours)), how, scale).wait();
                plain.allreduce("x", input_of(std::span(in)), view_of(std::span(theirs)), how, scale).wait();
                ASSERT_EQ(std::memcmp(ours.data(), theirs.data(), count * 4), 0) << count << " " << to_string(how);
                EXPECT_EQ(in, values_of(count, ranks().rank()));
                auto inout = in;
                ranks().allreduce("x", view_of(std::span(inout)), how, scale).wait();
                ASSERT_EQ(std::memcmp(inout.data(), theirs.data(), count * 4), 0)
                    << count << " " << to_string(how) << " in place";
            }
}

/// More than there is room for at once, of sizes on both sides of every limit, ended in another order on each rank.
TEST(node_memory, holds_many_at_once_among_other_collectives) {
    auto plain = another(0);
    std::vector<std::size_t> const counts{1, 122, 123, 5000, 20000};
    constexpr std::size_t many = 60;
    for (int round = 0; round < 5; ++round) {
        std::vector<std::vector<float>> ours, theirs;
        std::vector<operation> started, barriers;
        for (std::size_t i = 0; i < many; ++i) {
            ours.push_back(values_of(counts[i % counts.size()], ranks().rank(), static_cast<int>(i) + round));
            theirs.push_back(ours.back());
        }
        for (std::size_t i = 0; i < many; ++i) {
            started.push_back(ranks().allreduce("x", view_of(std::span(ours[i])), reduction::sum));
            if (i % 13 == 0) barriers.push_back(ranks().barrier());
        }
        for (std::size_t i = 0; i < many; ++i) started[ranks().rank() % 2 == 0 ? i : many - 1 - i].wait();
        for (auto& each : barriers) each.wait();
        for (std::size_t i = 0; i < many; ++i) {
            plain.allreduce("x", view_of(std::span(theirs[i])), reduction::sum).wait();
            ASSERT_EQ(ours[i], theirs[i]) << i;
        }
    }
}

TEST(node_memory, is_there_for_process_sets_too) {
    std::vector<int> const some{ranks().size() - 1, 0};
    auto part = ranks().include(some);
    if (!part) return;
    EXPECT_EQ(messages_of(part, 8), 0);
    float value = static_cast<float>(part.rank() + 1);
    part.allreduce("x", view_of(std::span(&value, 1)), reduction::sum).wait();
    EXPECT_EQ(value, 3);
}

/// What rank 0 gives and what the others give must be told apart whichever way each of the two goes.
void expect_mismatch(std::size_t of_rank_0, std::size_t of_others, reduction how_0 = reduction::sum) {
    auto victims = another();
    bool const first = victims.rank() == 0;
    std::vector<float> values(first ? of_rank_0 : of_others, 1.0f);
    auto const before = values;
    try {
        victims.allreduce("w", view_of(std::span(values)), first ? how_0 : reduction::sum).wait(duration{20.0});
        ADD_FAILURE() << "nothing was thrown: " << of_rank_0 << " and " << of_others;
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::peer_failed) << problem.what();
        EXPECT_THAT(problem.what(),
                    HasSubstr("is at another collective: the tensor has another size, type, reduction or factor"));
        if (!first) {
            EXPECT_THAT(problem.culprits(), ElementsAre(0));
        }
    }
    EXPECT_EQ(values, before) << "something was written";
    ranks().barrier().wait();
}

TEST(node_memory, tensors_that_differ_are_an_error_on_all_ranks) {
    expect_mismatch(10, 11);
    expect_mismatch(122, 123);
    expect_mismatch(1000, 1000, reduction::max);
    expect_mismatch(1000, 100000);  // only the first goes through memory
    expect_mismatch(100000, 1000);
    expect_mismatch(largest() / 4, largest() / 4 + 1);
}

TEST(node_memory, an_operation_of_another_number_is_an_error_at_once) {
    auto victims = another();
    float value = 1;
    auto const view = view_of(std::span(&value, 1));
    if (victims.rank() == 0) victims.allreduce("nothing", view_of(std::span<float>()), reduction::sum).wait();
    EXPECT_THAT(message_of(errc::peer_failed, [&] { victims.allreduce("w", view, reduction::sum).wait(duration{20.0}); }),
                HasSubstr("is at another collective"));
    ranks().barrier().wait();
}

TEST(node_memory, a_late_rank_is_named_at_the_deadline) {
    auto victims = another();
    float value = 1;
    auto const view = view_of(std::span(&value, 1));
    int const late = victims.size() - 1;
    if (victims.rank() == late) {
        ranks().barrier().wait();
        return;
    }
    try {
        victims.allreduce("late.weight", view, reduction::sum).wait(duration{0.1});
        ADD_FAILURE() << "nothing was thrown";
    } catch (comm_error const& problem) {
        EXPECT_EQ(problem.code(), errc::timeout);
        EXPECT_THAT(problem.culprits(), ElementsAre(late)) << problem.what();
        EXPECT_THAT(problem.what(), HasSubstr("not finished within 100 ms; waiting for rank " + std::to_string(late)));
    }
    ranks().barrier().wait();
}

/// Only so many wait in memory for a rank that is late: the others hear that the rest will not come, and because of whom.
TEST(node_memory, what_a_rank_gave_up_before_it_was_there_is_told_to_who_waits_for_it) {
    auto victims = another();
    std::vector<float> values(20, 1.0f);
    if (victims.rank() == 0) {
        std::vector<operation> started;
        for (auto& each : values) started.push_back(victims.allreduce("left", view_of(std::span(&each, 1)), reduction::sum));
        EXPECT_THROW(started.front().wait(duration{0.05}), comm_error);
        started.clear();
        ranks().barrier().wait();
    } else {
        ranks().barrier().wait();
        try {
            for (auto& each : values)
                victims.allreduce("left", view_of(std::span(&each, 1)), reduction::sum).wait(duration{20.0});
            ADD_FAILURE() << "nothing was thrown";
        } catch (comm_error const& problem) {
            EXPECT_EQ(problem.code(), errc::peer_failed);
            EXPECT_THAT(problem.what(), HasSubstr("has given up an earlier collective"));
            EXPECT_THAT(problem.what(), HasSubstr("rank 0 ("));
        }
    }
    ranks().barrier().wait();
}

/// No further file can be opened.
class no_more_files {
  public:
    explicit no_more_files(bool here) {
        if (!here) return;
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit now = before_;
        int const next = ::dup(0);
        ::close(next);
        now.rlim_cur = static_cast<rlim_t>(next);
        changed_ = ::setrlimit(RLIMIT_NOFILE, &now) == 0;
    }
    ~no_more_files() {
        if (changed_) ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    no_more_files(no_more_files const&) = delete;
    no_more_files& operator=(no_more_files const&) = delete;

  private:
    rlimit before_{};
    bool changed_ = false;
};

TEST(node_memory, small_tensors_go_as_messages_where_one_rank_can_share_none) {
    auto all = [] {
        no_more_files const here(ranks().rank() == 1);
        return another();
    }();
    EXPECT_GT(messages_of(all, 8), 0);
    float value = static_cast<float>(all.rank());
    all.allreduce("x", view_of(std::span(&value, 1)), reduction::sum).wait();
    EXPECT_EQ(value, static_cast<float>(all.size() * (all.size() - 1) / 2));
}

}  // namespace

}  // namespace muster::test
#endif
