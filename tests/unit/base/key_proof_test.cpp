#include "base/trust/key_proof.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster {
namespace {

TEST(key_proof, is_accepted_of_the_other_end_with_the_key_in_this_connection) {
    auto const key = make_nonce(), ours = make_nonce(), theirs = make_nonce();
    auto const expected = prove(key, "caller", {ours, theirs});
    EXPECT_TRUE(is_proven(expected, prove(key, "caller", {ours, theirs})));
    EXPECT_FALSE(is_proven(expected, prove(make_nonce(), "caller", {ours, theirs}))) << "another key";
    EXPECT_FALSE(is_proven(expected, prove(key, "called", {ours, theirs}))) << "this end's own, sent back";
    EXPECT_FALSE(is_proven(expected, prove(key, "caller", {theirs, ours}))) << "the nonces the other way round";
    EXPECT_FALSE(is_proven(expected, prove(key, "caller", {ours, make_nonce()}))) << "of an earlier connection";
    EXPECT_FALSE(is_proven(expected, prove(key, "caller", {ours}))) << "of less than was said";
    EXPECT_FALSE(is_proven(expected, key)) << "the key itself";
    EXPECT_FALSE(is_proven(expected, {}));
    EXPECT_FALSE(is_proven(expected, std::span(expected).first(31))) << "cut off";
    for (std::size_t at = 0; at < expected.size(); ++at) {
        auto wrong = expected;
        wrong[at] ^= 1;
        EXPECT_FALSE(is_proven(expected, wrong)) << at;
    }
}

TEST(key_proof, numbers_are_used_once) {
    EXPECT_NE(make_nonce(), make_nonce());
    EXPECT_NE(make_nonce(), nonce{});
}

TEST(key_proof, keys_are_64_digits) {
    auto const key = make_nonce();
    EXPECT_EQ(to_digits(key).size(), 64u);
    EXPECT_EQ(parse_digits(to_digits(key)), key);
    for (auto const& wrong :
         {std::string(), to_digits(key).substr(1), to_digits(key) + "0", std::string(64, 'x'), std::string(64, ' ')})
        EXPECT_FALSE(parse_digits(wrong)) << wrong;
}

}  // namespace
}  // namespace muster
