#include "io/dataset/checksum.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace muster {
namespace {

std::span<std::uint8_t const> bytes_of(std::string_view text) {
    return {reinterpret_cast<std::uint8_t const*>(text.data()), text.size()};
}

// What `xxhsum -H3` prints.
TEST(checksum, is_xxh3_with_seed_0) {
    EXPECT_EQ(xxh3_64(bytes_of("")), 0x2d06800538d394c2u);
    EXPECT_EQ(format_checksum(xxh3_64(bytes_of(""))), "2d06800538d394c2");
    EXPECT_EQ(format_checksum(0x1f), "000000000000001f");
}

TEST(checksum, blocks_and_their_fold) {
    auto const data = bytes_of("abcdefgh");
    std::vector<std::uint64_t> blocks(3);
    block_checksums(data, 3, blocks);
    EXPECT_EQ(blocks[0], xxh3_64(bytes_of("abc")));
    EXPECT_EQ(blocks[2], xxh3_64(bytes_of("gh")));
    EXPECT_EQ(fold_checksums(std::vector<std::uint64_t>{0x6867666564636261u}), xxh3_64(data)) << "little-endian";
    std::vector<std::uint64_t> swapped{blocks[1], blocks[0], blocks[2]};
    EXPECT_NE(fold_checksums(blocks), fold_checksums(swapped));
    std::vector<std::uint64_t> wrong(2);
    EXPECT_ANY_THROW(block_checksums(data, 3, wrong));
}

}  // namespace
}  // namespace muster
