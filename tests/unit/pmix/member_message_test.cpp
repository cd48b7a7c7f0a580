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
    for (std::string const& text :
         {std::string(), std::string("bye"), std::string("hello"), std::string("hello\na;b"), std::string("reform\n-1\n0\n0\n0"),
          std::string("reform\n1\n2\n0\n0"), std::string("reform\n1\n1\n0\n65536"), std::string("reform\n1\n1\n0"),
          std::string("lost\n0\n1,,2\nx"), whole + "\n", whole.substr(0, whole.rfind('\n'))})
        EXPECT_THROW(decode(text), error) << text;
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
