#include "launch/record/growth.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

namespace muster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

struct growth_test : testing::Test {
    growth_test() {
        std::string name = (fs::temp_directory_path() / "muster-growth-XXXXXX").string();
        folder = ::mkdtemp(name.data());
    }
    ~growth_test() override {
        std::error_code fault;
        fs::remove_all(folder, fault);
    }
    growth_test(growth_test const&) = delete;
    growth_test& operator=(growth_test const&) = delete;

    /// Written so many seconds from now.
    void write(std::string const& name, int later_s) const {
        std::ofstream(folder / name) << name;
        fs::last_write_time(folder / name, fs::file_time_type::clock::now() + std::chrono::seconds(later_s));
    }
    /// Whether it has grown since `before`, and what is said of that.
    std::pair<bool, std::string> judge(std::uintmax_t before, int most_entries) const {
        testing::internal::CaptureStderr();
        bool const grown = has_grown(folder, before, most_entries);
        return {grown, testing::internal::GetCapturedStderr()};
    }

    fs::path folder;
};

TEST_F(growth_test, the_newest_file_of_a_folder_tells) {
    write("step-1", -20);
    auto const before = measure_growth(folder);
    EXPECT_EQ(judge(before, 2), (std::pair{false, std::string()}));
    write("step-2", -10);
    EXPECT_EQ(judge(before, 2), (std::pair{true, std::string()}));
}

TEST_F(growth_test, of_a_folder_with_too_many_entries_it_is_unknown_and_counts_as_progress) {
    for (int i = 0; i < 3; ++i) write("step-" + std::to_string(i), -20);
    EXPECT_EQ(measure_growth(folder, 2), unknown_growth);
    for (auto const before : {measure_growth(folder, 3), measure_growth(folder, 2)}) {
        auto const [grown, said] = judge(before, 2);
        EXPECT_TRUE(grown);
        EXPECT_THAT(said, HasSubstr("is unknown and counts as progress"));
        EXPECT_THAT(said, HasSubstr("more than 2 entries"));
    }
    EXPECT_FALSE(judge(measure_growth(folder, 3), 3).first) << "all of them have been read";
}

TEST_F(growth_test, files_that_were_removed_are_no_growth) {
    write("step-1", -20);
    auto const before = measure_growth(folder);
    fs::remove(folder / "step-1");
    EXPECT_EQ(judge(before, 2), (std::pair{false, std::string()}));
    EXPECT_FALSE(has_grown(folder / "none", 0));
}

}  // namespace
}  // namespace muster
