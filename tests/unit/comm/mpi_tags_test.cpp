#include "comm/mpi/mpi_tags.hpp"

#include <gtest/gtest.h>

#include <set>

namespace muster::detail {
namespace {

TEST(tags, keep_kinds_and_sequence_numbers_apart_and_the_last_two_free) {
    for (int const upper : {32767, 65535, (1 << 23) - 1, 2147483647}) {
        std::set<int> seen;
        for (auto const kind : {traffic::reduce, traffic::gather, traffic::pairwise, traffic::sendrecv})
            for (unsigned const sequence : {0u, 1u, tag_sequences - 1, tag_sequences}) {
                int const tag = make_tag(kind, sequence, ~std::uint64_t{0}, upper);
                EXPECT_GE(tag, 0);
                EXPECT_LE(tag, upper);
                EXPECT_NE(tag, blame_tag(upper));
                EXPECT_NE(tag, through_tag(upper));
                EXPECT_EQ(traffic_of(tag), kind);
                EXPECT_EQ(sequence_of(tag), sequence % tag_sequences);
                EXPECT_EQ(tag_of_traffic(tag, traffic::gather), make_tag(traffic::gather, sequence, ~std::uint64_t{0}, upper));
                EXPECT_EQ(seen.insert(tag).second, sequence != tag_sequences);  // numbers begin again
            }
    }
}

TEST(tags, differ_with_the_arguments) {
    collective what{collective::kind::allreduce};
    what.in.count = 1000;
    auto const tag = [&] { return make_tag(traffic::reduce, 5, hash_of_reduction(what), 2147483647); };
    std::set<int> seen{tag()};
    what.how = reduction::max;
    EXPECT_TRUE(seen.insert(tag()).second);
    what.what = collective::kind::reducescatter;
    EXPECT_TRUE(seen.insert(tag()).second);
    what.in.count = 1001;
    EXPECT_TRUE(seen.insert(tag()).second);
    what.in.type = dtype::i8;
    EXPECT_TRUE(seen.insert(tag()).second);
    what.scale.after = 0.5;
    EXPECT_TRUE(seen.insert(tag()).second);
    what.scale = {0.5, 1};
    EXPECT_TRUE(seen.insert(tag()).second);
}

}  // namespace
}  // namespace muster::detail
