// Ranks that met: whether they are of one world, and share processors.
#include "comm/backend/world_record.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/backend/comm_error.hpp"
#include "tests/thrown_message.hpp"

namespace muster {
namespace {

using testing::HasSubstr;

identity world_of(int size, int rank = 0) {
    identity who;
    who.nspace = "job.0";
    who.rank = rank;
    who.world_size = size;
    who.host = "n" + std::to_string(rank / 2);
    return who;
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
    EXPECT_THAT(message_of(errc::singleton, [&] { check_world(records, world_of(4)); }), HasSubstr("(rank 2 on n1 counts 3)"));
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
