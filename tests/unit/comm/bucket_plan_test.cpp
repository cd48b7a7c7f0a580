// How gradients are cut into buckets, and told apart.
#include "comm/gradients/bucket_plan.hpp"

#include <gtest/gtest.h>

namespace muster {
namespace {

using ranges = std::vector<bucket_range>;

TEST(plan_buckets, the_first_is_small_and_each_closes_once_it_is_full) {
    std::vector<std::size_t> const elements{10, 10, 10, 100, 10, 5};
    EXPECT_EQ(plan_buckets(elements, 40, 200), (ranges{{0, 1}, {1, 3}, {4, 2}}));
    EXPECT_EQ(plan_buckets(elements, 1, 1), (ranges{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}}));
    EXPECT_EQ(plan_buckets(elements, 1 << 20, 1 << 20), (ranges{{0, 6}}));
    EXPECT_EQ(plan_buckets({}, 1, 1), ranges{});
}

TEST(plan_buckets, gradients_without_elements_join_the_bucket_at_hand) {
    std::vector<std::size_t> const elements{0, 4, 0, 4, 0};
    EXPECT_EQ(plan_buckets(elements, 16, 16), (ranges{{0, 2}, {2, 2}, {4, 1}}));
}

TEST(memory_order, ascending_descending_and_mixed_but_without_gap) {
    std::vector<float> memory(30);
    auto const piece = [&](std::size_t first, std::size_t count) {
        return gradient_view{"", std::span(memory).subspan(first, count)};
    };
    using order = std::vector<std::uint32_t>;
    EXPECT_EQ(memory_order(std::vector{piece(0, 5), piece(5, 5)}), (order{0, 1}));
    EXPECT_EQ(memory_order(std::vector{piece(5, 5), piece(0, 5)}), (order{1, 0}));
    EXPECT_EQ(memory_order(std::vector{piece(10, 5), piece(0, 5), piece(5, 5)}), (order{1, 2, 0}));
    EXPECT_EQ(memory_order(std::vector{piece(0, 5), piece(6, 5)}), std::nullopt);
    EXPECT_EQ(memory_order(std::vector{piece(0, 5), piece(4, 5)}), std::nullopt);
    EXPECT_EQ(memory_order(std::vector{gradient_view{}, piece(5, 5), gradient_view{}, piece(0, 5)}), (order{3, 1, 0, 2}));
}

TEST(first_difference, is_told_in_words) {
    std::vector<float> memory(30);
    auto const of = [&](std::string name, std::size_t count) {
        return gradient_view{std::move(name), std::span(memory).first(count)};
    };
    auto const text = [](std::vector<gradient_view> gradients) { return serialise(gradients); };
    auto const reference = text({of("a", 1), of("b", 2), of("c", 3)});
    EXPECT_EQ(first_difference(reference, reference), std::nullopt);
    EXPECT_EQ(first_difference(text({of("a", 1), of("x", 2), of("c", 4)}), reference),
              "gradient 1 is \"x\" with 2 elements here and \"b\" with 2 on rank 0");
    EXPECT_EQ(first_difference(text({of("a", 1), of("b", 5), of("c", 3)}), reference),
              "gradient 1 is \"b\" with 5 elements here and \"b\" with 2 on rank 0");
    EXPECT_EQ(first_difference(text({of("a", 1), of("b", 2)}), reference),
              "there are 2 gradients here and 3 on rank 0; the first one missing is \"c\" with 3 elements");
    EXPECT_EQ(first_difference(text({of("a", 1), of("b", 2), of("c", 3), of("d", 4)}), reference),
              "there are 4 gradients here and 3 on rank 0; the first one too many is \"d\" with 4 elements");
    EXPECT_EQ(first_difference(text({}), reference),
              "there are 0 gradients here and 3 on rank 0; the first one missing is \"a\" with 1 elements");
}

}  // namespace
}  // namespace muster
