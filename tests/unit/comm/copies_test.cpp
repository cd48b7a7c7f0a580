// Copies by vector stores: every byte arrives, and none beside them changes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "comm/tensor/simd.hpp"

namespace muster {
namespace {

constexpr std::size_t room = 256;

std::vector<char> made_up(std::size_t bytes) {
    std::vector<char> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<char>(i * 31 + i / 251);
    return made;
}

/// What lies at `to` after a copy of `bytes` there, with what is around it.
template <typename Copy>
void expect_copied(std::size_t bytes, std::size_t from, std::size_t to, Copy copy) {
    auto const source = made_up(bytes + room);
    std::vector<char> memory(bytes + 3 * room, 'x');
    auto* const target = memory.data() + (room - reinterpret_cast<std::uintptr_t>(memory.data()) % room) + to;
    copy(target, source.data() + from, bytes);
    EXPECT_EQ(std::memcmp(target, source.data() + from, bytes), 0) << bytes << " bytes from " << from << " to " << to;
    EXPECT_EQ(target[-1], 'x') << bytes;
    EXPECT_EQ(target[bytes], 'x') << bytes;
}

TEST(copies, bring_every_byte_and_no_other) {
    for (simd const level : available_simd())
        for (std::size_t const bytes : {0, 1, 63, 64, 100, 2047, 2048, 2049, 2111, 4096, 10007, 32768, 32769, 70001}) {
            expect_copied(bytes, 3, 64,
                          [level](void* to, void const* from, std::size_t n) { copy_streaming(to, from, n, level); });
            for (std::size_t const to : {64, 65, 80, 127})
                expect_copied(bytes, 3, to,
                              [level](void* at, void const* from, std::size_t n) { copy_cached(at, from, n, level); });
        }
}

}  // namespace
}  // namespace muster
