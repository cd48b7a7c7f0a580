// Which nodes are remembered, and for how long.
#include "launch/samples/remarks/odd_nodes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::time_t now = 1'800'000'000;

odd_node make(std::string host, std::time_t before, std::string cluster = "alpha") {
    return {std::move(host), std::move(cluster), "4711", "kept the others waiting 14 % of the time", now - before};
}

class state_folder {
  public:
    state_folder() : path_(testing::TempDir() + "odd_nodes_" + std::to_string(::getpid())) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    ~state_folder() { std::filesystem::remove_all(path_); }
    state_folder(state_folder const&) = delete;
    state_folder& operator=(state_folder const&) = delete;
    environment variables() const { return {{"XDG_STATE_HOME", path_}}; }
    std::string file() const { return path_ + "/muster/odd-nodes"; }

  private:
    std::string path_;
};

TEST(odd_nodes, are_remembered_by_cluster_for_two_weeks) {
    state_folder const folder;
    auto const variables = folder.variables();
    EXPECT_THAT(recall_odd_nodes(variables, "alpha", now), IsEmpty());
    remember_odd_nodes(variables, {make("n1", 60), make("n2", 30, "beta")});
    remember_odd_nodes(variables, {make("n3", 10), make("n1", 20)});
    EXPECT_THAT(recall_odd_nodes(variables, "alpha", now), ElementsAre(make("n3", 10), make("n1", 20)));
    EXPECT_THAT(recall_odd_nodes(variables, "beta", now), ElementsAre(make("n2", 30, "beta")));
    EXPECT_THAT(recall_odd_nodes(variables, "", now), IsEmpty());
    EXPECT_THAT(recall_odd_nodes(variables, "alpha", now + odd_for_s + 1), IsEmpty());
    struct stat found {};
    ASSERT_EQ(::stat(folder.file().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600u);
}

TEST(odd_nodes, stay_within_a_bound) {
    std::vector<odd_node> many;
    for (std::time_t i = 0; i < 500; ++i) many.push_back(make("n" + std::to_string(i), i));
    auto const kept = parse_odd_nodes(odd_nodes_text(many), now);
    ASSERT_EQ(kept.size(), most_odd_nodes);
    EXPECT_EQ(kept.front().host, "n0");
}

TEST(odd_nodes, of_a_file_that_others_may_write_are_not_believed) {
    state_folder const folder;
    auto const variables = folder.variables();
    remember_odd_nodes(variables, {make("n1", 60)});
    ::chmod(folder.file().c_str(), 0666);
    EXPECT_THAT(recall_odd_nodes(variables, "alpha", now), IsEmpty());
}

TEST(odd_nodes, of_other_text_are_what_can_be_read) {
    EXPECT_THAT(parse_odd_nodes("{\"host\":\"n1\",\"at\":\"soon\"}\n[1]\nnull\n{\"host\":7,\"at\":1799999999}\n{", now),
                IsEmpty());
    auto const read =
        parse_odd_nodes("{\"host\":\"n\\u001b[31m1\",\"at\":1799999999}\n{\"host\":\"later\",\"at\":1800000001}", now);
    ASSERT_EQ(read.size(), 1u);
    EXPECT_EQ(read.front().host.find('\x1b'), std::string::npos);
}

TEST(odd_nodes, forgets_where_nothing_can_be_written) {
    remember_odd_nodes({{"XDG_STATE_HOME", "/proc/none"}}, {make("n1", 1)});
    remember_odd_nodes({}, {make("n1", 1)});
    EXPECT_THAT(recall_odd_nodes({{"XDG_STATE_HOME", "/proc/none"}}, "alpha", now), IsEmpty());
}

TEST(odd_nodes, say_when_it_was) {
    EXPECT_EQ(describe(make("n1", 120), now), "kept the others waiting 14 % of the time in job 4711, 2 min ago");
    EXPECT_THAT(describe(make("n1", 20 * 3600), now), testing::EndsWith(", 20 h ago"));
    EXPECT_THAT(describe(make("n1", 3 * 24 * 3600), now), testing::EndsWith(", 3 days ago"));
    auto none = make("n1", 120);
    none.job.clear();
    EXPECT_EQ(describe(none, now), "kept the others waiting 14 % of the time, 2 min ago");
}

}  // namespace
}  // namespace muster
