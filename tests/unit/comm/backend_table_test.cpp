// The choice of a backend.
#include "comm/backend_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "comm/backend/comm_error.hpp"
#include "comm/shm/shm_backend.hpp"
#include "tests/thrown_message.hpp"

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

TEST(choose_backend, takes_the_first_that_is_available) {
    EXPECT_EQ(choose_backend(rows, world_of(2), {}).row->name, "small");
}

TEST(choose_backend, says_what_was_tried_and_why_it_was_refused) {
    auto const message = message_of(errc::unavailable, [] { choose_backend(rows, world_of(8, 3), {}); });
    EXPECT_THAT(message, HasSubstr("net: no network; small: more than 4 ranks"));
    EXPECT_THAT(message, HasSubstr("rank 3 of 8 on n1"));
}

TEST(choose_backend, a_forced_one_is_the_only_one_tried) {
    comm_options options;
    options.backend = "net";
    auto const message = message_of(errc::unavailable, [&] { choose_backend(rows, world_of(2), options); });
    EXPECT_THAT(message, HasSubstr("net: no network"));
    EXPECT_THAT(message, Not(HasSubstr("small")));
}

TEST(choose_backend, an_unknown_name_lists_the_known_ones) {
    comm_options options;
    options.backend = "smal";
    auto const message = message_of(errc::usage, [&] { choose_backend(rows, world_of(2), options); });
    EXPECT_THAT(message, HasSubstr("net, small"));
    EXPECT_THAT(message, HasSubstr("did you mean \"small\"?"));
}

TEST(choose_backend, one_rank_is_served_by_self_and_more_are_not) {
    EXPECT_EQ(choose_backend(backend_table(), world_of(1), {}).row->name, "self");
    comm_options options;
    options.backend = "self";
    EXPECT_THAT(message_of(errc::unavailable, [&] { choose_backend(backend_table(), world_of(2), options); }),
                HasSubstr("the world has 2"));
}

TEST(choose_backend, ranks_of_one_node_share_memory_and_others_do_not) {
    identity one_node = world_of(4);
    one_node.local_size = 4;
    one_node.from = identity::source::slurm;
    auto const choice = choose_backend(backend_table(), one_node, {});
    EXPECT_EQ(choice.row->name, "shm");
    EXPECT_THAT(choice.why, HasSubstr("backend shm, the first in the table that can serve them; refused before: self: "));
    EXPECT_THAT(choice.why, HasSubstr("hierarchical: "));
    one_node.from = identity::source::pmi;  // another job may have its name, or other nodes may have some of its ranks
    EXPECT_THAT(shm_unavailable(one_node, {}, 0).value_or(""), HasSubstr("ask for shm by name"));
    comm_options by_name;
    by_name.backend = "shm";
    EXPECT_EQ(choose_backend(backend_table(), one_node, by_name).why, "backend shm, asked for by name");
    identity two_nodes = world_of(4);
    two_nodes.local_size = 2;
    EXPECT_THAT(shm_unavailable(two_nodes, {}, 0).value_or(""), HasSubstr("2 of 4 are on this one"));
}

}  // namespace
}  // namespace muster
