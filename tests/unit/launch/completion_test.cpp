#include "launch/help/completion.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The rows of muster with other texts: no word of what help shows is left.
struct reworded {
    std::vector<command_row> commands{muster::commands().begin(), muster::commands().end()};
    std::vector<setting> settings{muster::settings().begin(), muster::settings().end()};
    reworded() {
        for (auto& row : commands) row.synopsis = row.synopsis.empty() ? "" : "something";
        for (auto& row : settings) row.argument = row.argument.empty() ? "" : "THING";
    }
    completion_tables tables() const { return {commands, settings}; }
    command_row& command(std::string_view name) {
        return *std::ranges::find_if(commands, [&](command_row const& row) { return row.name == name; });
    }
};

TEST(completion, reads_fields_and_no_words_of_help) {
    reworded const other;
    EXPECT_EQ(bash_completion(other.tables()), bash_completion());
    EXPECT_EQ(fish_completion(other.tables()), fish_completion());
    EXPECT_EQ(zsh_completion({.commands = other.commands}), zsh_completion()) << "it shows the names of values";
}

TEST(completion, follows_the_fields) {
    reworded other;
    std::string const asks = "seen_subcommand_from trace' -a '(muster completion jobs", files = "seen_subcommand_from hosts' -F";
    EXPECT_THAT(fish_completion(other.tables()), AllOf(Not(HasSubstr(asks)), Not(HasSubstr(files))));
    other.command("trace").takes_jobs = true;
    other.command("hosts").takes_program = true;
    EXPECT_THAT(fish_completion(other.tables()), AllOf(HasSubstr(asks), HasSubstr(files)));
    EXPECT_THAT(bash_completion(other.tables()), Not(testing::Eq(bash_completion())));
}

TEST(completion, knows_files_and_folders_by_the_kind_of_a_setting) {
    EXPECT_EQ(source_of({.name = "x", .argument = "DIR", .kind = setting_kind::text}), value_source::nothing);
    EXPECT_EQ(source_of({.name = "x", .argument = "WHERE", .kind = setting_kind::folder}), value_source::folders);
    EXPECT_EQ(source_of({.name = "x", .argument = "WHAT", .kind = setting_kind::file}), value_source::files);
}

}  // namespace
}  // namespace muster
