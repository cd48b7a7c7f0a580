
#include "bench/tools/crowd.hpp"
#include "bench/study/program_software.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/tools/crowd.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(cpu_seconds_of, counts_all_but_idling_and_waiting_on_the_cpus_asked_for) {
    constexpr auto stat =
        "cpu  600 0 0 9000 0 0 0 0 0 0\n"
        "cpu0 100 10 20 5000 300 1 2 3 50 0\n"
        "cpu1 400 0 0 5000 0 0 0 0 0 0\n"
        "cpu10 100 0 0 5000 0 0 0 0 0 0\n"
        "intr 5 6 7\n";
    std::vector<int> const first{0}, some{0, 10}, none;
    EXPECT_DOUBLE_EQ(cpu_seconds_of(stat, first, 100).worked, 1.36);
    EXPECT_DOUBLE_EQ(cpu_seconds_of(stat, some, 100).worked, 2.36);
    EXPECT_DOUBLE_EQ(cpu_seconds_of(stat, none, 100).worked, 0);
    EXPECT_DOUBLE_EQ(cpu_seconds_of("", first, 100).worked, 0);
}

TEST(cpu_seconds_of, sums_what_the_hypervisor_took_from_these_cpus) {
    constexpr auto stat =
        "cpu  600 0 0 9000 0 0 0 70 0 0\n"
        "cpu0 100 10 20 5000 300 1 2 50 3 0\n"
        "cpu1 400 0 0 5000 0 0 0 20 0 0\n"
        "intr 5 6 7\n";
    std::vector<int> const first{0}, both{0, 1}, none;
    EXPECT_DOUBLE_EQ(cpu_seconds_of(stat, first, 100).stolen, 0.5);
    EXPECT_DOUBLE_EQ(cpu_seconds_of(stat, both, 100).stolen, 0.7);
    EXPECT_DOUBLE_EQ(cpu_seconds_of(stat, none, 100).stolen, 0);
    EXPECT_DOUBLE_EQ(cpu_seconds_of("cpu0 1 2", first, 100).stolen, 0);
}

TEST(mean_clock_mhz, is_that_of_these_cpus) {
    constexpr auto text = "processor\t: 0\ncpu MHz\t\t: 2000.5\n\nprocessor\t: 1\ncpu MHz\t\t: 3000.5\n";
    std::vector<int> const second{1}, both{0, 1}, none{7};
    EXPECT_DOUBLE_EQ(mean_clock_mhz(text, second), 3000.5);
    EXPECT_DOUBLE_EQ(mean_clock_mhz(text, both), 2500.5);
    EXPECT_DOUBLE_EQ(mean_clock_mhz(text, none), 0);
    EXPECT_DOUBLE_EQ(mean_clock_mhz("", both), 0);
}

TEST(digests_of, leave_out_a_program_that_is_too_large_to_read) {
    temporary_folder const folder("programs", environment::capture());
    auto const small = folder.path() + "/small.sh", large = folder.path() + "/large.sh";
    std::ofstream(small) << "echo";
    std::ofstream(large) << "echo";
    std::filesystem::resize_file(large, (std::uintmax_t{256} << 20) + 1);  // sparse
    auto const digests = digests_of({large, small});
    ASSERT_EQ(digests.size(), 1U);
    EXPECT_EQ(digests.front().first, small);
}

TEST(read_versions, takes_names_and_versions_and_nothing_else) {
    using pairs = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(read_versions("python\t3.11.2\nnoise\ntorch\t1.13.1\n\tnameless\n"),
              (pairs{{"python", "3.11.2"}, {"torch", "1.13.1"}}));
    EXPECT_EQ(read_versions(""), pairs{});
}

TEST(busy_line, warns_beyond_a_tenth_of_the_cpus_and_names_who) {
    machine_load load{8.9, 8, 0.8, {}, {}};
    EXPECT_THAT(busy_line(load), IsEmpty()) << "a tenth, and the past minute does not count";
    load.before = 1.94;
    load.busiest = {{"cc1plus", 7, 0.98}, {"python3", 8, 0.91}};
    EXPECT_EQ(busy_line(load),
              "busy: other programs used 1.9 of 8 CPUs (cc1plus 0.98, python3 0.91; load average 8.9) before the runs; these "
              "figures mean little\n");
    load = {0.2, 2, 0.1, 1.5, {}};
    EXPECT_THAT(busy_line(load), HasSubstr("used 1.5 of 2 CPUs (load average 0.2) during the runs; these"));
}

TEST(machine_load, survives_its_json) {
    machine_load const load{8.9, 2, 1.5, 0.25, {{"cc1plus", 7, 0.98}}};
    auto const document = to_json(load);
    EXPECT_EQ(read_load(checked_json(document, "test")), load);
}

// The work of this process is its own, not that of others.
TEST(crowd_watch, leaves_out_what_is_measured) {
    crowd_watch const seen;
    for (auto const begin = std::clock(); std::clock() - begin < CLOCKS_PER_SEC / 4;) {  // a quarter of a second of work
    }
    EXPECT_GT(seen.own_s(), 0.01);
    EXPECT_EQ(seen.load_of(seen.own_s() + 1e6).during, 0);
}

}  // namespace
}  // namespace muster
