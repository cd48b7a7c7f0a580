#include "comm/backend/deadlines.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <stdexcept>

namespace muster::detail {
namespace {

TEST(call_with_deadline, comes_back_or_not) {
    EXPECT_TRUE(call_with_deadline(duration{60.0}, [] {}));
    EXPECT_TRUE(call_with_deadline(duration{0}, [] {}));
    EXPECT_THROW(call_with_deadline(duration{60.0}, [] { throw std::runtime_error("x"); }), std::runtime_error);
    auto const gate = std::make_shared<std::mutex>();
    gate->lock();
    call_on_thread stuck([gate] { std::scoped_lock const through(*gate); });
    EXPECT_FALSE(stuck.wait(duration{0.01}));
    gate->unlock();
    EXPECT_TRUE(stuck.wait(duration{60.0}));
}

}  // namespace
}  // namespace muster::detail
