#include "comm/c_api/c_call.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace muster::c_api {
namespace {

struct counted {
    std::shared_ptr<int> kept;
};

TEST(handle_table, a_number_leads_to_its_object_until_it_is_freed) {
    handle_table<counted> table;
    auto const kept = std::make_shared<int>(7);
    counted* const number = table.add(kept);
    ASSERT_NE(table.find(number), nullptr);
    EXPECT_EQ(*table.find(number)->kept, 7);
    EXPECT_EQ(kept.use_count(), 2);
    table.remove(number);
    EXPECT_EQ(kept.use_count(), 1);
    EXPECT_EQ(table.find(number), nullptr);
}

TEST(handle_table, a_freed_number_stays_free_when_its_place_is_taken_again) {
    handle_table<counted> table;
    counted* const first = table.add(std::make_shared<int>(1));
    table.remove(first);
    counted* const second = table.add(std::make_shared<int>(2));
    EXPECT_NE(first, second);
    EXPECT_EQ(table.find(first), nullptr);
    EXPECT_EQ(*table.find(second)->kept, 2);
}

TEST(handle_table, what_was_never_given_out_is_not_found) {
    handle_table<counted> table;
    int elsewhere = 0;
    for (std::uintptr_t bits : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{1} << 32, (std::uintptr_t{1} << 32) | 1,
                                ~std::uintptr_t{0}, reinterpret_cast<std::uintptr_t>(&elsewhere)})
        EXPECT_EQ(table.find(reinterpret_cast<counted const*>(bits)), nullptr) << bits;
}

TEST(handle_table, threads_add_and_free_at_once) {
    handle_table<counted> table;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&table, t] {
            for (int turn = 0; turn < 200; ++turn) {
                std::vector<counted*> mine;
                for (int i = 0; i < 8; ++i) mine.push_back(table.add(std::make_shared<int>(t * 1000 + i)));
                for (int i = 0; i < 8; ++i) EXPECT_EQ(*table.find(mine[static_cast<std::size_t>(i)])->kept, t * 1000 + i);
                for (auto* one : mine) table.remove(one);
            }
        });
    for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace muster::c_api
