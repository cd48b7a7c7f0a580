// Device memory and pinned memory on the FAKE driver: they are freed as the driver frees them, behind the work that may use them.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <string>
#include <thread>
#include <utility>

#include "comm/cuda/handles.hpp"
#include "fake_ranks.hpp"

namespace muster {
namespace {

/// Frees `memory` on a device that stands still and still has to write to it.
template <typename Memory>
void expect_freed_behind_work(cuda::device const& on, Memory memory, cuda::device_address address) {
    test::fake_reset();
    test::fake_set("freeze", 1);
    auto stream = cuda::make_stream(on);
    {
        cuda::device::scope const current(on);
        ASSERT_EQ(on.with().fill(address, 0, 16, stream.get().handle), cuda::success);
    }
    std::atomic<bool> freed{false};
    std::thread owner([&] {
        memory.reset();
        freed = true;
    });
    while (!freed && test::fake_log().find("memory is freed once the device is through") == std::string::npos)
        std::this_thread::yield();
    EXPECT_FALSE(freed) << "what the device writes next is not this memory any more";
    test::fake_set("freeze", 0);
    owner.join();
    EXPECT_TRUE(freed);
    test::fake_reset();
}

TEST(device_memory, is_freed_behind_the_work_that_may_use_it) {
    auto const on = cuda::device::open(test::fake_driver(), 0);
    auto memory = cuda::make_memory(*on, 16);
    auto const address = memory.get().handle;
    expect_freed_behind_work(*on, std::move(memory), address);
    auto pinned = cuda::make_pinned(*on, 16);
    auto const place = std::bit_cast<cuda::device_address>(pinned.get().handle);
    expect_freed_behind_work(*on, std::move(pinned), place);
}

TEST(device_memory, of_one_device_does_not_wait_for_another) {
    auto const on = cuda::device::open(test::fake_driver(), 0), other = cuda::device::open(test::fake_driver(), 1);
    auto memory = cuda::make_memory(*on, 16);
    auto stream = cuda::make_stream(*on);
    test::fake_set("freeze", 1);
    {
        cuda::device::scope const current(*on);
        ASSERT_EQ(on->with().fill(memory.get().handle, 0, 16, stream.get().handle), cuda::success);
    }
    cuda::make_memory(*other, 16).reset();
    test::fake_set("freeze", 0);
}

}  // namespace
}  // namespace muster
