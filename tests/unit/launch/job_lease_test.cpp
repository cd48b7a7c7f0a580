#include "launch/placement/job_lease.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>

namespace muster {
namespace {

namespace fs = std::filesystem;

topology machine_with(int gpus, int cores) {
    topology t;
    t.host = "node1";
    for (int i = 0; i < cores; ++i) t.cores.push_back({cpuset{{i}}, 0, 0});
    for (int i = 0; i < gpus; ++i) t.gpus.push_back({.index = i});
    return t;
}

TEST(place_beside, a_second_run_gets_what_is_left) {
    auto const machine = machine_with(4, 8);
    EXPECT_EQ(place_beside(machine, {}, {}, 2).note, "");
    auto const second = place_beside(machine, {}, {1, 0, {"0", "1"}, cpuset{{0, 1, 2, 3}}}, 2);
    EXPECT_EQ(second.note, "another run of this job on node1: this one gets its own GPUs and cores");
    auto const ranks = bind_ranks(second.machine, second.wanted, 2);
    EXPECT_EQ(ranks[0].device->index, 2);
    EXPECT_EQ(ranks[1].device->index, 3);
    EXPECT_EQ(ranks[1].visible_devices, "2,3") << "the GPU of a rank is LOCAL_RANK, as in any run";
    for (auto const& rank : ranks) EXPECT_TRUE(intersect(rank.cores, cpuset{{0, 1, 2, 3}}).empty());
}

TEST(place_beside, a_run_without_room_shares_and_says_so) {
    auto const machine = machine_with(4, 8);
    auto const full = place_beside(machine, {}, {2, 0, {"0", "1", "2"}, cpuset{{0, 1, 2, 3, 4, 5, 6}}}, 2);
    EXPECT_EQ(
        full.note,
        "2 other runs of this job on node1 too: this one uses the same GPUs and cores; give each run -n and --cpus-per-rank, "
        "so that there is room for all");
    EXPECT_EQ(full.wanted, placement_request{});
    EXPECT_EQ(place_beside(machine, {}, {1, 0, {"0", "1", "2"}, cpuset{{0, 1, 2, 3, 4, 5, 6}}}, 2, true).note,
              "another run of this job on node1 too: this one uses the same GPUs and cores; give each run nodes of its own by -H")
        << "where the job has more";
    placement_request mapped;
    mapped.gpu_map = {0, 1};
    mapped.bind_to = bind_policy::none;
    EXPECT_EQ(place_beside(machine, mapped, {1, 0, {"0", "1"}, cpuset{{0}}}, 2).wanted, mapped)
        << "what the user has chosen stays";
}

TEST(place_beside, what_the_others_have_is_named_alone) {
    auto const machine = machine_with(4, 8);
    EXPECT_EQ(place_beside(machine, {}, {1, 0, {}, {}}, 2).note, "") << "a run whose ranks are not bound";
    EXPECT_EQ(place_beside(machine, {}, {1, 0, {"0"}, cpuset{{0, 1, 2, 3, 4, 5, 6, 7}}}, 2).note,
              "another run of this job on node1 too: this one uses the same cores; give each run -n and --cpus-per-rank, so that "
              "there is room for all");
    placement_request wide;
    wide.cpus_per_rank = 3;
    EXPECT_EQ(place_beside(machine_with(0, 8), wide, {1, 0, {}, cpuset{{0, 1, 2}}}, 2).wanted, wide) << "5 cores for 6";
    wide.reserved_cpus = "7";
    wide.cpus_per_rank = 2;
    EXPECT_EQ(place_beside(machine_with(0, 8), wide, {1, 0, {}, cpuset{{0, 1, 2}}}, 2).wanted.reserved_cpus, "7,0-2");
}

TEST(job_leases, are_seen_while_their_session_lives) {
    auto const base = fs::path(testing::TempDir()) / ("leases." + std::to_string(::getpid()));
    auto const session = base / ("muster-" + std::to_string(::getuid()) + "-1-abcdef");
    fs::create_directories(session);
    unique_fd lock(::open(session.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    {
        job_leases const leases("7", {base.string()});
        leases.take(session.string(), {"n1"},
                    {{.device = gpu{.index = 3}, .cores = cpuset{{4, 5}}}, {.device = gpu{.index = 1}, .cores = cpuset{{2}}}});
    }
    auto const seen = [&](std::string const& job, std::string const& own, std::string const& node = "n1") {
        return job_leases(job, {base.string()}).others(own, {node, "n9"});
    };
    EXPECT_EQ(seen("7", ""), (leased_parts{1, 0, {"3", "1"}, cpuset{{2, 4, 5}}}));
    EXPECT_EQ(seen("8", ""), leased_parts{}) << "another job's";
    EXPECT_EQ(seen("7", "", "n2"), leased_parts{}) << "on other nodes";
    job_leases("7", {base.string()}).take_wide(session.string(), {"n2", "n1"});
    EXPECT_EQ(seen("7", ""), (leased_parts{1, 1, {}, {}}));
    EXPECT_EQ(seen("7", "", "n3"), leased_parts{}) << "of none of the nodes";
    EXPECT_NE(place_beside(machine_with(4, 8), {}, seen("7", ""), 2).note.find("uses several nodes"), std::string::npos);
    EXPECT_EQ(seen("7", session.string()), leased_parts{}) << "its own";
    lock.reset();
    EXPECT_EQ(seen("7", ""), leased_parts{}) << "its maker is gone";
    fs::remove_all(base);
}

}  // namespace
}  // namespace muster
