// The choice of a backend, and whether ranks that met are of one world.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/shm/shm_backend.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

std::optional<std::string> no_network(identity const&, comm_options const&) {
    return "no network";
}
std::optional<std::string> too_many(identity const& who, comm_options const&) {
    if (who.world_size > 4) return "more than 4 ranks";
    return std::nullopt;
}
std::unique_ptr<collective_backend> nothing(identity const&, comm_options const&) {
    return nullptr;
}

constexpr std::array rows{backend_row{"net", no_network, nothing}, backend_row{"small", too_many, nothing}};

identity world_of(int size, int rank = 0) {
    identity who;
    who.nspace = "job.0";
    who.rank = rank;
    who.world_size = size;
    who.host = "n" + std::to_string(rank / 2);
    return who;
}

template <typename Body>
std::string message_of(errc code, Body&& body) {
    try {
        body();
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), code) << problem.what();
        return problem.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

TEST(select_backend, takes_the_first_that_is_available) {
    EXPECT_EQ(select_backend(rows, world_of(2), {}).name, "small");
}

TEST(select_backend, says_what_was_tried_and_why_it_was_refused) {
    auto const message = message_of(errc::unavailable, [] { select_backend(rows, world_of(8, 3), {}); });
    EXPECT_THAT(message, HasSubstr("net: no network; small: more than 4 ranks"));
    EXPECT_THAT(message, HasSubstr("rank 3 of 8 on n1"));
}

TEST(select_backend, a_forced_one_is_the_only_one_tried) {
    comm_options options;
    options.backend = "net";
    auto const message = message_of(errc::unavailable, [&] { select_backend(rows, world_of(2), options); });
    EXPECT_THAT(message, HasSubstr("net: no network"));
    EXPECT_THAT(message, Not(HasSubstr("small")));
}

TEST(select_backend, an_unknown_name_lists_the_known_ones) {
    comm_options options;
    options.backend = "smal";
    auto const message = message_of(errc::usage, [&] { select_backend(rows, world_of(2), options); });
    EXPECT_THAT(message, HasSubstr("net, small"));
    EXPECT_THAT(message, HasSubstr("did you mean \"small\"?"));
}

TEST(select_backend, one_rank_is_served_by_self_and_more_are_not) {
    EXPECT_EQ(select_backend(world_of(1), {}).name, "self");
    comm_options options;
    options.backend = "self";
    EXPECT_THAT(message_of(errc::unavailable, [&] { select_backend(world_of(2), options); }), HasSubstr("the world has 2"));
}

TEST(select_backend, ranks_of_one_node_share_memory_and_others_do_not) {
    identity one_node = world_of(4);
    one_node.local_size = 4;
    one_node.from = identity::source::slurm;
    auto const choice = choose_backend(backends(), one_node, {});
    EXPECT_EQ(choice.row->name, "shm");
    EXPECT_THAT(choice.why, HasSubstr("backend shm, the first in the table that can serve them; refused before: self: "));
    EXPECT_THAT(choice.why, HasSubstr("hierarchical: "));
    one_node.from = identity::source::pmi;  // another job may have its name, or other nodes may have some of its ranks
    EXPECT_THAT(shm_unavailable(one_node, {}).value_or(""), HasSubstr("ask for shm by name"));
    comm_options by_name;
    by_name.backend = "shm";
    EXPECT_EQ(choose_backend(backends(), one_node, by_name).why, "backend shm, asked for by name");
    identity two_nodes = world_of(4);
    two_nodes.local_size = 2;
    EXPECT_THAT(shm_unavailable(two_nodes, {}).value_or(""), HasSubstr("2 of 4 are on this one"));
}

std::vector<world_record> records_of(int size) {
    std::vector<world_record> records;
    for (int rank = 0; rank < size; ++rank) records.push_back(describe_world(world_of(size, rank), {}));
    return records;
}

TEST(check_world, one_world_in_any_order) {
    auto records = records_of(4);
    std::swap(records[0], records[3]);
    EXPECT_NO_THROW(check_world(records, world_of(4)));
}

TEST(check_world, a_rank_that_came_up_alone) {
    auto const message =
        message_of(errc::singleton, [] { check_world(std::vector{describe_world(world_of(8, 5), {})}, world_of(8, 5)); });
    EXPECT_THAT(message, HasSubstr("rank 5 of 8 on n2"));
    EXPECT_THAT(message, HasSubstr("a world of 1 rank(s)"));
    EXPECT_THAT(message, HasSubstr("there are 8"));
    EXPECT_THAT(message, HasSubstr("muster run"));
}

TEST(check_world, one_rank_that_counts_otherwise_is_named_on_all) {
    auto records = records_of(4);
    records[2].world_size = 3;
    EXPECT_THAT(message_of(errc::singleton, [&] { check_world(records, world_of(4)); }),
                HasSubstr("(rank 2 on n1 even counts 3)"));
}

TEST(check_world, the_same_rank_twice) {
    auto records = records_of(4);
    records[3].rank = 1;
    EXPECT_THAT(message_of(errc::peer_failed, [&] { check_world(records, world_of(4)); }),
                HasSubstr("on n0 and on n1, call themselves rank 1"));
}

TEST(check_world, a_rank_outside) {
    auto records = records_of(2);
    records[1].rank = 7;
    EXPECT_THAT(message_of(errc::peer_failed, [&] { check_world(records, world_of(2)); }), HasSubstr("calls itself rank 7"));
}

TEST(check_world, another_job_or_other_options) {
    auto records = records_of(3);
    records[2].job += 1;
    EXPECT_THAT(message_of(errc::peer_failed, [&] { check_world(records, world_of(3)); }),
                HasSubstr("rank 2 on n1 belongs to another job step"));
    records = records_of(3);
    records[1].direct_ranks = 0;
    EXPECT_THAT(message_of(errc::peer_failed, [&] { check_world(records, world_of(3)); }),
                HasSubstr("direct_ranks is 0 on rank 1"));
}

TEST(is_crowded, counts_the_processors_of_the_ranks_of_one_host) {
    auto records = records_of(4);  // two on n0, two on n1
    for (auto& record : records) record.processors = {0b1111};
    EXPECT_FALSE(is_crowded(records, "n0"));
    for (auto& record : records) record.processors = {0b1};
    EXPECT_TRUE(is_crowded(records, "n0"));
    records[0].processors = {0b10};  // bound apart
    EXPECT_FALSE(is_crowded(records, "n0"));
    EXPECT_TRUE(is_crowded(records, "n1"));
    for (auto& record : records) record.processors = {};  // not known
    EXPECT_FALSE(is_crowded(records, "n1"));
}

}  // namespace
}  // namespace muster
