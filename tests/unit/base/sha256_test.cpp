#include "base/trust/sha256.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

// The examples of FIPS 180-4, and lengths at which the padding needs a block of its own.
TEST(sha256, is_that_of_the_standard) {
    EXPECT_EQ(sha256_digits(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_digits("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_digits("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256_digits(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    EXPECT_EQ(sha256_digits("abc", 4), "ba7816bf");
}

}  // namespace
}  // namespace muster
