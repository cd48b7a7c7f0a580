#include "pmix/member_message.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster::elastic {
namespace {

generation third() {
    return {.number = 3,
            .who = {"node1-7.abc", 1, 2, 1, 2, 0, 1, "node1", identity::source::muster},
            .members = {0, 3},
            .sync = false,
            .master = "10.0.0.1",
            .master_port = 29500,
            .addresses = {"node1/4711/10.0.0.1/ab", ""}};
}

TEST(MemberMessage, WhatWasEncodedIsDecoded) {
    auto left_out = third();
    left_out.who.rank = -1;
    for (message const& one : {message{hello{}}, message{hello{"node1/4711/10.0.0.1,fd00::1/ab"}}, message{announce{}},
                               message{reform{2, true, false, 4711}}, message{reform{0, false, true}},
                               message{lost{4, {0, 2}, "rank 2 on node1 (member 2) was killed by signal 9"}}, message{third()},
                               message{left_out}, message{hosts_changed{true, false}}, message{lost{0, {}, ""}}})
        EXPECT_EQ(decode(encode(one)), one) << encode(one);
}

TEST(MemberMessage, ALineOfAReasonStaysOne) {
    auto const read = std::get<lost>(decode(encode(lost{1, {0}, "two\nlines\r"})));
    EXPECT_EQ(read.why, "two lines ");
}

TEST(MemberMessage, WhatIsNoMessageIsRefused) {
    auto const whole = encode(third());
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(decode(whole.substr(0, size)), error) << size;
    EXPECT_THROW(decode(whole + "x"), error);
    EXPECT_THROW(decode("bye"), error);
    for (message const& one : {message{hello{"a;b"}}, message{reform{-1}}, message{reform{1, true, false, 65536}},
                               message{lost{-1}}, message{lost{0, {1, -2}, "x"}}})
        EXPECT_THROW(decode(encode(one)), error) << one.index();
    auto flag = encode(hosts_changed{true, false});
    flag.back() = 2;
    EXPECT_THROW(decode(flag), error);
    auto contradicts = third();
    contradicts.members.push_back(9);
    EXPECT_THROW(decode(encode(contradicts)), error);
    contradicts = third();
    contradicts.who.rank = 2;
    EXPECT_THROW(decode(encode(contradicts)), error);
    contradicts = third();
    contradicts.addresses.pop_back();
    EXPECT_THROW(decode(encode(contradicts)), error);
}

TEST(MemberMessage, APlaceIsReadAsItWasSet) {
    environment variables;
    set_place(variables, third().who);
    EXPECT_EQ(identify(variables, "elsewhere"), third().who);
    EXPECT_EQ(variables.get("RANK"), "1");
    EXPECT_EQ(variables.get("HOROVOD_SIZE"), "2");
}

}  // namespace
}  // namespace muster::elastic
