#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "launch/elastic/membership.hpp"

namespace muster::membership {
namespace {

/// The lines of the picture in docs/elastic-protocol.md.
std::string picture() {
    std::string text;
    for (auto const& row : transitions()) {
        text += std::string("    ") + std::string(name_of(row.from)) + " --> " + std::string(name_of(row.to)) + ": " +
                std::string(name_of(row.on));
        if (auto const action = name_of(row.then); !action.empty()) text += " / " + std::string(action);
        text += "\n";
    }
    return text;
}

TEST(membership_table, the_page_shows_it) {
    std::ifstream file(MUSTER_SOURCE_DIR "/docs/elastic-protocol.md");
    std::stringstream page;
    page << file.rdbuf();
    EXPECT_NE(page.str().find(picture()), std::string::npos) << "docs/elastic-protocol.md should hold\n" << picture();
}

TEST(membership_table, no_two_rows_say_what_follows_the_same_event) {
    std::set<std::pair<member_state, member_event>> seen;
    for (auto const& row : transitions())
        EXPECT_TRUE(seen.emplace(row.from, row.on).second) << name_of(row.from) << name_of(row.on);
}

TEST(membership_table, nothing_leads_out_of_an_end) {
    for (auto const& row : transitions()) EXPECT_FALSE(has_ended(row.from)) << name_of(row.from);
}

TEST(membership_table, each_process_that_lives_can_end) {
    using enum member_state;
    using enum member_event;
    for (auto const from : {coming, waiting, unneeded, overdue, started, asking, working, wanting, condemned, leaving})
        for (auto const how : {ends_well, fails, is_lost_with_host}) {
            auto const* const row = find_transition(from, how);
            ASSERT_NE(row, nullptr) << name_of(from);
            EXPECT_TRUE(has_ended(row->to)) << name_of(from);
        }
}

}  // namespace
}  // namespace muster::membership
