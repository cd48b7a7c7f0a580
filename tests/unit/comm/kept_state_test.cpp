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
using testing::HasSubstr;
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

struct kept_parts : testing::Test {
    unique_fd file = kept::make_memory();
    std::string part(int number) const { return std::to_string(number) + ":/proc/self/fd/" + std::to_string(file.get()); }
};

TEST_F(kept_parts, the_two_latest_the_newest_first_also_in_another_process_and_of_other_sizes) {
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

TEST_F(kept_parts, what_was_not_written_to_its_end_or_has_changed_is_no_copy) {
    kept_state own(part(3));
    commit(own, 1, std::string(50'000, 'a'));
    commit(own, 2, std::string(50'000, 'b'));
    auto const places = own.find();
    ASSERT_EQ(places.size(), 2u);
    auto* const newest = const_cast<std::byte*>(places[0].bytes.data());
    newest[49'999] = std::byte{'a'};
    EXPECT_THAT(found(own), ElementsAre("1:" + std::string(50'000, 'a')));
    testing::internal::CaptureStdout();  // where the log goes
    kept_state again(part(3));
    EXPECT_THAT(found(again), ElementsAre("1:" + std::string(50'000, 'a')));
    EXPECT_THAT(testing::internal::GetCapturedStdout(),
                HasSubstr("the copy of commit 2 that this rank finds in memory is damaged, and is not used"));
    commit(again, 3, "c");  // not over the one that is whole
    EXPECT_THAT(found(again), ElementsAre("3:c", "1:" + std::string(50'000, 'a')));
}

TEST_F(kept_parts, the_copy_that_ranks_have_gone_back_to_stays_until_the_next_commit_is_whole) {
    kept_state first(part(0));
    commit(first, 6, "six");
    commit(first, 7, "what others had not committed");
    kept_state again(part(0));
    commit(again, 7, "seven");
    EXPECT_THAT(found(again), ElementsAre("7:seven", "6:six"));
    commit(again, 8, "eight");
    EXPECT_THAT(found(again), ElementsAre("8:eight", "7:seven"));
    kept_state anew(part(0));  // it has gone back to nothing
    commit(anew, 1, "one");
    EXPECT_THAT(found(anew), ElementsAre("1:one", "8:eight"));
}

/// The head of the newest copy of a part, as a keeper maps it; here of one that is known to lie in this slot.
kept::head& head_in(unique_fd const& file, std::uint64_t part, std::size_t slot) {
    void* const at = ::mmap(nullptr, kept::page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                            static_cast<off_t>(kept::place_of(part, slot)));
    return *static_cast<kept::head*>(at);
}

TEST_F(kept_parts, a_copy_that_the_keeper_needs_stays_and_commits_go_on_beside_it) {
    kept_state own(part(2));
    commit(own, 1, "one");
    commit(own, 2, "two");
    head_in(file, 2, 0).ready = kept::held;
    for (std::uint64_t step = 3; step < 8; ++step) commit(own, step, "later");
    EXPECT_THAT(found(own), ElementsAre("7:later", "6:later", "1:one"));
    // The first commit of a step or a later one is held by whoever makes it.
    auto& wanted = static_cast<kept::control*>(::mmap(nullptr, kept::page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(),
                                                      static_cast<off_t>(kept::place_of(2))))
                       ->wanted;
    wanted = 9;
    for (std::uint64_t step = 8; step < 20; ++step) commit(own, step, "later");
    EXPECT_EQ(wanted.load(), 0u);
    EXPECT_THAT(found(own), ElementsAre("19:later", "18:later", "9:later", "1:one"));
    kept_state again(part(2));  // also after a restart
    commit(again, 20, "again");
    EXPECT_THAT(found(again), ElementsAre("20:again", "19:later", "9:later", "1:one"));
}

TEST_F(kept_parts, places_that_are_none_are_refused) {
    for (auto const* const place : {"x:/dev/null", "1", "-1:/dev/null", "9999999:/dev/null"})
        EXPECT_THROW(kept_state{place}, error);
    kept_state gone("0:/no/such");  // its keeper has ended
    commit(gone, 1, "x");
    EXPECT_THAT(found(gone), ElementsAre("1:x"));
    kept_state alone;
    commit(alone, 1, "x");
    EXPECT_THAT(found(alone), ElementsAre("1:x"));
    kept_state without_a_keeper("7:");
    commit(without_a_keeper, 1, "x");
    EXPECT_THAT(found(without_a_keeper), ElementsAre("1:x"));
}

}  // namespace

}  // namespace muster
