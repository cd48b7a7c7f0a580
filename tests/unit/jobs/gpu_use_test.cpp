// How GPUs are used: by a made-up NVML, which answers as the "NVML API Reference Guide" says.
#include "launch/hardware/gpu_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include "launch/jobs/logs/gpu_lines.hpp"
#include "launch/jobs/logs/watch_screen.hpp"
#include "launch/ranks/gpu_sampler.hpp"
#include "launch/record/gpu_use_record.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int nvml_ok = 0, nvml_refuses = 3, nvml_unknown = 6;
constexpr std::uint64_t gib = 1ull << 30;
int opened = 0;
int one_device = 0;  // any address stands for it

nvml_gpu_api make_use_api() {
    nvml_gpu_api api;
    api.init = [] { return ++opened, nvml_ok; };
    api.shutdown = [] { return --opened, nvml_ok; };
    api.handle_of = [](char const* uuid, nvml_device* device) {
        *device = reinterpret_cast<nvml_device>(&one_device);
        return std::string_view(uuid) == "GPU-a" || std::string_view(uuid) == "MIG-a" ? nvml_ok : nvml_unknown;
    };
    api.memory = [](nvml_device, nvml_memory* memory) { return *memory = {80 * gib, 68 * gib, 12 * gib}, nvml_ok; };
    api.rates = [](nvml_device, nvml_rates* rates) { return *rates = {87, 20}, nvml_ok; };
    api.power = [](nvml_device, unsigned* milliwatts) { return *milliwatts = 311'600, nvml_ok; };
    return api;
}

gpu make_gpu(int index, std::string const& uuid) {
    gpu g;
    g.index = index;
    g.uuid = uuid;
    g.name = "A100";
    return g;
}

TEST(gpu_use, is_what_the_driver_says) {
    auto slice = make_gpu(1, "MIG-a");
    slice.mig = mig_slice{"GPU-a", 3, 0};
    {
        gpu_use_reader const reader(make_use_api(), {make_gpu(2, "GPU-a"), make_gpu(3, "GPU-unknown"), slice});
        EXPECT_EQ(opened, 1);
        EXPECT_THAT(reader.read(), ElementsAre(gpu_use{"2", "A100", 87, 80 * gib, 12 * gib, 312},
                                               gpu_use{"1/3", "A100", 87, 80 * gib, 12 * gib, 312}));
    }
    EXPECT_EQ(opened, 0);
}

TEST(gpu_use, is_unknown_where_the_driver_refuses) {
    auto api = make_use_api();
    api.rates = [](nvml_device, nvml_rates*) { return nvml_refuses; };
    api.power = nullptr;
    EXPECT_THAT(gpu_use_reader(api, {make_gpu(0, "GPU-a")}).read(),
                ElementsAre(gpu_use{"0", "A100", -1, 80 * gib, 12 * gib, -1}));
    EXPECT_TRUE(gpu_use_reader(nvml_gpu_api(), {make_gpu(0, "GPU-a")}).empty());
    EXPECT_TRUE(gpu_use_reader(make_use_api(), {}).empty());
    EXPECT_EQ(opened, 0);
}

TEST(gpus_to_sample, are_those_of_the_job) {
    topology machine;
    machine.gpus = {make_gpu(0, "GPU-a"), make_gpu(1, "GPU-b"), make_gpu(2, ""), make_gpu(3, "GPU-c"), make_gpu(4, "GPU-d")};
    machine.gpus[3].vendor = gpu_vendor::amd;
    machine.gpus[4].known_to_driver = false;
    binding rank;
    rank.device = machine.gpus[1];
    EXPECT_THAT(gpus_to_sample(machine, {rank}, false), ElementsAre(machine.gpus[0], machine.gpus[1]));
    EXPECT_THAT(gpus_to_sample(machine, {rank}, true), ElementsAre(machine.gpus[1]));
    EXPECT_THAT(gpus_to_sample({}, {}, false), IsEmpty());
}

TEST(gpu_use_record, keeps_the_mean_and_the_most) {
    auto const folder = std::filesystem::temp_directory_path() / ("muster-gpus-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    event_loop loop;
    {
        gpu_use_record record(loop, folder.string());
        record.note("node1", {{"0", "A100", 50, 80 * gib, 30 * gib, 300}});
        record.note("node1", {{"0", "A100", 100, 80 * gib, 10 * gib, 200}});
        record.note("node2", {{"0/3", "A100 \xff", -1, 0, 0, -1}});
        record.note("node3", {});
    }
    auto const nodes = read_gpu_use(folder.string());
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_THAT(gpu_summary(nodes), ElementsAre("node1 GPU 0: mean 75 %, at most 30.0 GiB, last 100 %, 10.0 of 80.0 GiB, 200 W",
                                                "node2 GPU 0/3: last not known"));
    EXPECT_NEAR(nodes[0].at, static_cast<double>(std::time(nullptr)), 60);
    EXPECT_FALSE(std::filesystem::exists(folder / "gpus.json.new"));
    EXPECT_EQ(std::filesystem::status(folder / "gpus.json").permissions(), std::filesystem::perms(0600));
    std::filesystem::remove_all(folder);
    EXPECT_THAT(read_gpu_use(folder.string()), IsEmpty());
    std::ofstream(folder) << "a file, no folder";
    gpu_use_record(loop, folder.string()).note("node1", {{"0", "A100", 50, 0, 0, 0}});  // no error
    std::filesystem::remove(folder);
    gpu_use_record(loop, "").note("node1", {{"0", "A100", 50, 0, 0, 0}});
}

TEST(gpu_lines, tell_of_each_node_and_of_all) {
    std::vector<shown_gpu_node> const nodes{
        {"node1",
         1000,
         {{"0", 87, 80, 80.0 * gib, 12.3 * gib, 40.0 * gib, 312}, {"1", 12, 10, 80.0 * gib, 78.0 * gib, 78.0 * gib, -1}}},
        {"node2", 955, {{"0", -1, -1, -1, -1, -1, -1}}}};
    EXPECT_THAT(gpu_lines(nodes, 1010), ElementsAre("node1: GPU 0 87 %, 12.3 of 80.0 GiB, 312 W; GPU 1 12 %, 78.0 of 80.0 GiB",
                                                    "node2: GPU 0 not known (55 s ago)"));
    EXPECT_EQ(gpu_overview(nodes),
              "3 GPUs of 2 nodes: mean 50 %, least 12 % (node1 GPU 1), most memory 78.0 of 80.0 GiB (node1 GPU 1)");
    EXPECT_EQ(gpu_overview({nodes[1]}), "1 GPU of 1 node");
}

TEST(gpu_lines, take_what_they_can_of_any_file) {
    EXPECT_THAT(parse_gpu_use(""), IsEmpty());
    EXPECT_THAT(parse_gpu_use("[1]"), IsEmpty());
    EXPECT_THAT(parse_gpu_use(R"({"nodes": [3, {"host": "a"}, {"gpus": [4]}]})"), IsEmpty());
    auto const nodes = parse_gpu_use(
        R"({"nodes": [{"host": "a\u001b[2J", "at": "x", "gpus": [{"number": 7, "busy_percent": -5, "watts": 1e300}]}]})");
    ASSERT_EQ(nodes.size(), 1u);
    EXPECT_EQ(nodes[0].host.find('\x1b'), std::string::npos);
    EXPECT_THAT(gpu_lines(nodes, 0).at(0), testing::EndsWith(": GPU  not known"));
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
