#include "launch/jobs/logs/gpu_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launch/jobs/logs/watch_screen.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t gib = 1ull << 30;

gpu_sample make_gpu(std::string number, int busy, int mean_busy, std::uint64_t used, std::uint64_t most_used) {
    gpu_sample gpu;
    gpu.number = std::move(number);
    gpu.busy_percent = busy;
    gpu.mean_busy_percent = mean_busy;
    gpu.memory_bytes = 80 * gib;
    gpu.used_bytes = used;
    gpu.most_used_bytes = most_used;
    return gpu;
}

std::vector<node_sample> make_nodes() {
    node_sample first, second;
    first.host = "node1";
    first.at_s = 1000;
    first.gpus = {make_gpu("0", 87, 80, 12 * gib + 3 * gib / 10, 40 * gib), make_gpu("1", 12, 10, 78 * gib, 78 * gib)};
    first.gpus[0].watts = 312;
    second.host = "node2";
    second.at_s = 955;
    second.gpus.emplace_back().number = "0";
    return {first, second};
}

TEST(gpu_lines, tell_of_each_node_and_of_all) {
    auto const nodes = make_nodes();
    EXPECT_THAT(gpu_lines(nodes, 1010), ElementsAre("node1: GPU 0 87 %, 12.3 of 80.0 GiB, 312 W; GPU 1 12 %, 78.0 of 80.0 GiB",
                                                    "node2: GPU 0 not known (55 s ago)"));
    EXPECT_EQ(gpu_overview(nodes),
              "3 GPUs of 2 nodes: mean 50 %, least 12 % (node1 GPU 1), most memory 78.0 of 80.0 GiB (node1 GPU 1)");
    EXPECT_EQ(gpu_overview({nodes[1]}), "1 GPU of 1 node");
    EXPECT_THAT(gpu_summary(nodes), ElementsAre("node1 GPU 0: mean 80 %, at most 40.0 GiB, last 87 %, 12.3 of 80.0 GiB, 312 W",
                                                "node1 GPU 1: mean 10 %, at most 78.0 GiB, last 12 %, 78.0 of 80.0 GiB",
                                                "node2 GPU 0: last not known"));
}

TEST(gpu_nodes, are_those_with_gpus_of_a_folder_that_can_be_read) {
    auto const folder = std::filesystem::temp_directory_path() / ("muster-gpus-" + std::to_string(::getpid()));
    EXPECT_THAT(read_gpu_nodes(folder.string()), IsEmpty());
    std::filesystem::create_directories(folder);
    run_samples all;
    all.nodes = make_nodes();
    all.nodes.emplace_back().host = "node3";
    std::ofstream(folder / samples_file) << samples_json(all);
    auto const nodes = read_gpu_nodes(folder.string());
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[0], all.nodes[0]);
    std::filesystem::remove(folder / samples_file);
    std::filesystem::create_directory(folder / samples_file);
    EXPECT_THAT(read_gpu_nodes(folder.string()), IsEmpty()) << "no file, which is told to nobody";
    std::filesystem::remove_all(folder);
}

TEST(fold_line, cuts_behind_semicolons) {
    EXPECT_THAT(fold_line("node1: GPU 0 87 %; GPU 1 86 %; GPU 2 9 %", 30),
                ElementsAre("node1: GPU 0 87 %; GPU 1 86 %;", "  GPU 2 9 %"));
    EXPECT_THAT(fold_line("much longer than that", 5), ElementsAre("much longer than that"));
    EXPECT_THAT(fold_line("a;b;c", 1), ElementsAre("a;", "  b;", "  c"));
    EXPECT_THAT(fold_line("", 5), ElementsAre(""));
}

}  // namespace
}  // namespace muster
