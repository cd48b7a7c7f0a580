// By a made-up NVML, which answers as the "NVML API Reference Guide" says.
#include "launch/samples/gpu_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "launch/placement/this_node.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int nvml_ok = 0, nvml_refuses = 3, nvml_unknown = 6;
constexpr std::uint64_t gib = 1ull << 30;
int opened = 0;
int one_device = 0;  // any address stands for it

nvml_gpu_api make_api() {
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

gpu_sample expected(std::string number) {
    gpu_sample gpu;
    gpu.number = std::move(number);
    gpu.name = "A100";
    gpu.busy_percent = 87;
    gpu.memory_bytes = 80 * gib;
    gpu.used_bytes = 12 * gib;
    gpu.watts = 312;
    return gpu;
}

gpu make_gpu(int index, std::string const& uuid) {
    gpu g;
    g.index = index;
    g.uuid = uuid;
    g.name = "A100";
    return g;
}

TEST(gpu_reader, tells_what_the_driver_says) {
    auto slice = make_gpu(1, "MIG-a");
    slice.mig = mig_slice{"GPU-a", 3, 0};
    {
        gpu_reader const reader(make_api(), {make_gpu(2, "GPU-a"), make_gpu(3, "GPU-unknown"), slice});
        EXPECT_EQ(opened, 1);
        EXPECT_THAT(reader.read(), ElementsAre(expected("2"), expected("1/3")));
    }
    EXPECT_EQ(opened, 0);
}

TEST(gpu_reader, tells_of_clocks_and_errors) {
    auto api = make_api();
    api.clock = [](nvml_device, int type, unsigned* mhz) { return *mhz = type == 1 ? 1200 : 7, nvml_ok; };
    api.most_clock = [](nvml_device, int type, unsigned* mhz) { return *mhz = type == 1 ? 1980 : 7, nvml_ok; };
    api.throttle_reasons = [](nvml_device, unsigned long long* bits) { return *bits = 0x1 | 0x40 | 0x80, nvml_ok; };
    api.temperature = [](nvml_device, int sensor, unsigned* celsius) { return *celsius = sensor == 0 ? 91 : 7, nvml_ok; };
    api.ecc_errors = [](nvml_device, int type, int counter, unsigned long long* count) {
        return *count = type == 1 && counter == 0 ? 2 : 77, nvml_ok;
    };
    api.remapped_rows = [](nvml_device, unsigned* corrected, unsigned* uncorrected, unsigned* pending, unsigned* failed) {
        *corrected = 3, *uncorrected = 4, *pending = *failed = 1;
        return nvml_ok;
    };
    api.pcie_replays = [](nvml_device, unsigned* count) { return *count = 5, nvml_ok; };
    api.link_errors = [](nvml_device, unsigned link, int counter, unsigned long long* count) {
        *count = counter == 0 ? 10 : 1000;
        return link == 1 || link == 4 ? nvml_ok : nvml_refuses;
    };
    auto wanted = expected("0");
    wanted.clock_mhz = 1200;
    wanted.most_clock_mhz = 1980;
    wanted.slowed = "heat (hardware), power brake";
    wanted.celsius = 91;
    wanted.ecc_errors = 2;
    wanted.remapped_rows = 7;
    wanted.link_replays = 25;
    EXPECT_THAT(gpu_reader(api, {make_gpu(0, "GPU-a")}).read(), ElementsAre(wanted));
    api.link_errors = nullptr;
    EXPECT_EQ(gpu_reader(api, {make_gpu(0, "GPU-a")}).read().at(0).link_replays, 5);
}

TEST(gpu_reader, leaves_out_what_the_driver_refuses) {
    auto api = make_api();
    api.rates = [](nvml_device, nvml_rates*) { return nvml_refuses; };
    api.power = nullptr;
    auto wanted = expected("0");
    wanted.busy_percent.reset();
    wanted.watts.reset();
    gpu_reader const reader(api, {make_gpu(0, "GPU-a")});
    EXPECT_THAT(reader.read(), ElementsAre(wanted));
    EXPECT_THAT(gpu_reader(nvml_gpu_api(), {make_gpu(0, "GPU-a")}).read(), IsEmpty());
    EXPECT_THAT(gpu_reader(make_api(), {}).read(), IsEmpty());
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

}  // namespace
}  // namespace muster
