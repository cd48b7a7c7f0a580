// More elements than an int can count.
// ranks: 2
// alone: it takes 2.2 GiB a rank
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "comm/communicator.hpp"
#include "mpi_test.hpp"

namespace muster::test {

namespace {

constexpr std::size_t count = (std::size_t{1} << 31) + 4099;

/// Mapped with large pages where there are any: touching it first is most of this test's time.
struct mapped {
    mapped()
        : data(static_cast<std::uint8_t*>(::mmap(nullptr, count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        ::madvise(data, count, MADV_HUGEPAGE);
    }
    ~mapped() { ::munmap(data, count); }
    mapped(mapped const&) = delete;
    mapped& operator=(mapped const&) = delete;
    std::uint8_t* data;
};

constexpr std::size_t places[] = {0, 1, (std::size_t{1} << 31) - 1, std::size_t{1} << 31, (std::size_t{1} << 31) + 1, count - 1};

TEST(large, broadcast_and_allreduce_of_more_than_2_to_the_31_elements) {
    mapped const memory;
    ASSERT_NE(static_cast<void*>(memory.data), MAP_FAILED);
    auto& all = ranks();
    tensor_view const whole{memory.data, count, dtype::u8, memory_kind::host};
    std::memset(memory.data, all.rank() == 0 ? 3 : 0, count);  // on all ranks at once: the first touch is what takes time
    if (all.rank() == 0) {
        for (auto const place : places) memory.data[place] = static_cast<std::uint8_t>(10 + place % 7);
    }
    all.broadcast("large", whole, 0).wait();
    for (auto const place : places) EXPECT_EQ(memory.data[place], 10 + place % 7) << place;
    EXPECT_EQ(memory.data[count / 2], 3);

    all.allreduce("large", whole, reduction::sum).wait();
    for (auto const place : places) EXPECT_EQ(memory.data[place], 2 * (10 + place % 7)) << place;
    std::size_t wrong = 0;
    for (std::size_t i = 5; i < count; i += 4097)
        wrong += memory.data[i] == 6 || std::find(std::begin(places), std::end(places), i) != std::end(places) ? 0u : 1u;
    EXPECT_EQ(wrong, 0u);
}

}  // namespace

}  // namespace muster::test
