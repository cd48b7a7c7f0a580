#include "comm/membership/kept_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/error.hpp"

namespace muster {

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::span<std::byte const> bytes_of(std::string const& text) {
    return std::as_bytes(std::span(text));
}

void commit(kept_state& to, std::uint64_t step, std::string const& text) {
    std::span<std::byte const> const pieces[]{bytes_of(text), bytes_of(text)};
    to.commit(step, pieces);
}

/// "5:text", the first of two pieces.
std::vector<std::string> found(kept_state& in) {
    std::vector<std::string> all;
    for (auto const& one : in.find()) {
        std::string const text(reinterpret_cast<char const*>(one.bytes.data()), one.bytes.size() / 2);
        all.push_back(std::to_string(one.step) + ":" + text.substr(0, text.find_last_not_of('\0') + 1));
    }
    return all;
}

struct kept : testing::Test {
    unique_fd file = make_kept_memory();
    std::string part(int number) const { return std::to_string(number) + ":/proc/self/fd/" + std::to_string(file.get()); }
};

TEST_F(kept, the_two_latest_the_newest_first_also_in_another_process_and_of_other_sizes) {
    kept_state first(part(0)), other(part(7));
    EXPECT_THAT(found(first), IsEmpty());
    commit(first, 5, "five");
    commit(other, 50, "another rank's");
    commit(first, 6, std::string(100'000, '6'));
    commit(first, 4, "four");  // the program says what a step is
    EXPECT_THAT(found(first), ElementsAre("4:four", "6:" + std::string(100'000, '6')));
    kept_state again(part(0));
    EXPECT_THAT(found(again), ElementsAre("4:four", "6:" + std::string(100'000, '6')));
    commit(again, 7, "seven");
    EXPECT_THAT(found(again), ElementsAre("7:seven", "4:four"));
    EXPECT_THAT(found(other), ElementsAre("50:another rank's"));
}

TEST_F(kept, what_was_not_written_to_its_end_or_has_changed_is_no_copy) {
    kept_state own(part(3));
    commit(own, 1, std::string(50'000, 'a'));
    commit(own, 2, std::string(50'000, 'b'));
    auto const places = own.find();
    ASSERT_EQ(places.size(), 2u);
    auto* const newest = const_cast<std::byte*>(places[0].bytes.data());
    newest[49'999] = std::byte{'a'};
    EXPECT_THAT(found(own), ElementsAre("1:" + std::string(50'000, 'a')));
    kept_state again(part(3));
    EXPECT_THAT(found(again), ElementsAre("1:" + std::string(50'000, 'a')));
    commit(again, 3, "c");  // not over the one that is whole
    EXPECT_THAT(found(again), ElementsAre("3:c", "1:" + std::string(50'000, 'a')));
}

TEST_F(kept, places_that_are_none_are_refused) {
    for (auto const* const place : {"x:/dev/null", "1", "-1:/dev/null", "9999999:/dev/null"})
        EXPECT_THROW(kept_state{place}, error);
    EXPECT_THROW(kept_state{"0:/no/such"}, error);
    kept_state alone;
    commit(alone, 1, "x");
    EXPECT_THAT(found(alone), ElementsAre("1:x"));
}

}  // namespace

}  // namespace muster
