// What ranks that give up tell each other, and which tags keep messages apart.
#include "comm/backend/blame_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>

#include "comm/backend/call_with_deadline.hpp"
#include "comm/mpi/mpi_tags.hpp"

namespace muster::detail {
namespace {

TEST(last_words, come_back_as_they_were_said_with_the_sender) {
    auto const text = write_last_words({{3, false, "process 4711 is stopped"}, {1, true, "process 12 is gone"}});
    EXPECT_EQ(text, "3 process 4711 is stopped\n1 process 12 is gone\n");
    auto const heard = read_last_words(text, "rank 0 on n0", 4);
    ASSERT_EQ(heard.size(), 2u);
    EXPECT_EQ(heard[0].rank, 1);
    EXPECT_EQ(heard[1].rank, 3);
    EXPECT_TRUE(heard[1].dead);
    EXPECT_EQ(heard[1].why, "process 4711 is stopped; rank 0 on n0 gave it up");
}

TEST(last_words, what_is_no_line_of_them_is_left_out) {
    for (auto const* text : {"", "\n", "x y\n", "4 beyond the world\n", "-1 nobody\n", "2", "2\n", "99999999999999999999 x\n"})
        EXPECT_TRUE(read_last_words(text, "s", 4).empty()) << text;
    EXPECT_EQ(read_last_words("2 cut off", "s", 4).size(), 1u);
}

TEST(last_words, fit_a_message_without_a_handshake) {
    std::vector<late_rank> many;
    for (int rank = 0; rank < 1000; ++rank) many.push_back({rank, true, "process 123456 is gone"});
    EXPECT_LE(write_last_words(many).size(), 1024u);
}

TEST(tags, keep_kinds_and_sequence_numbers_apart_and_the_last_one_free) {
    for (int const upper : {32767, 65535, (1 << 23) - 1, 2147483647}) {
        std::set<int> seen;
        for (auto const kind : {traffic::reduce, traffic::gather, traffic::pairwise, traffic::exchange})
            for (unsigned const sequence : {0u, 1u, tag_sequences - 1, tag_sequences}) {
                int const tag = make_tag(kind, sequence, ~std::uint64_t{0}, upper);
                EXPECT_GE(tag, 0);
                EXPECT_LE(tag, upper);
                EXPECT_NE(tag, last_words_tag(upper));
                EXPECT_EQ(traffic_of(tag), kind);
                EXPECT_EQ(sequence_of(tag), sequence % tag_sequences);
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

TEST(blocking_call, comes_back_or_not) {
    EXPECT_TRUE(came_back(duration{60.0}, [] {}));
    EXPECT_TRUE(came_back(duration{0}, [] {}));
    EXPECT_THROW(came_back(duration{60.0}, [] { throw std::runtime_error("x"); }), std::runtime_error);
    auto const gate = std::make_shared<std::mutex>();
    gate->lock();
    blocking_call stuck([gate] { std::scoped_lock const through(*gate); });
    EXPECT_FALSE(stuck.wait(duration{0.01}));
    gate->unlock();
    EXPECT_TRUE(stuck.wait(duration{60.0}));
}

}  // namespace
}  // namespace muster::detail
