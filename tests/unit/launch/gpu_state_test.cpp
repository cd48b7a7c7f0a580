// A made-up NVML, which answers as the "NVML API Reference Guide" says.
#include "launch/hardware/gpu_state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

namespace muster {
namespace {

constexpr int success = 0, not_supported = 3, not_found = 6, insufficient_size = 7;
int open_count = 0;
unsigned long long slowed_by = 0;
int marker = 0;  // any address stands for the one device

nvml_gpu_api make_api() {
    nvml_gpu_api api;
    api.init = [] {
        ++open_count;
        return success;
    };
    api.shutdown = [] {
        --open_count;
        return success;
    };
    api.handle_of = [](char const* uuid, nvml_device* device) {
        *device = reinterpret_cast<nvml_device>(&marker);
        return std::string_view(uuid) == "GPU-a" ? success : not_found;
    };
    api.memory = [](nvml_device, nvml_memory* memory) {
        *memory = {100, 60, 40};
        return success;
    };
    api.ecc_errors = [](nvml_device, int type, int counter, unsigned long long* count) {
        *count = type == 1 && counter == 0 ? 2 : 77;
        return success;
    };
    api.remapped_rows = [](nvml_device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending, unsigned* failed) {
        *correctable = *uncorrectable = 5;
        *pending = 1;
        *failed = 0;
        return success;
    };
    api.throttle_reasons = [](nvml_device, unsigned long long* reasons) {
        *reasons = slowed_by;
        return success;
    };
    api.clock = [](nvml_device, int type, unsigned* mhz) {
        *mhz = type == 1 ? 1200 : 7;
        return success;
    };
    api.most_clock = [](nvml_device, int, unsigned*) { return not_supported; };
    api.processes = [](nvml_device, unsigned* count, nvml_process* list) {
        *count = 1;
        list[0].pid = 0;  // nobody's
        return success;
    };
    return api;
}

gpu device(std::string const& uuid) {
    gpu g;
    g.index = 3;
    g.uuid = uuid;
    g.name = "A100";
    return g;
}

TEST(gpu_state, is_what_the_driver_says) {
    auto const state = read_gpu_states(make_api(), {device("GPU-a")}).at(0);
    EXPECT_EQ(open_count, 0);
    EXPECT_EQ(state.index, 3);
    EXPECT_EQ(state.name, "A100");
    EXPECT_EQ(state.memory_bytes, 100u);
    EXPECT_EQ(state.used_bytes, 40u);
    EXPECT_EQ(state.ecc_errors, 2);
    EXPECT_TRUE(state.needs_reset);
    EXPECT_EQ(state.slowed, "");
    EXPECT_EQ(state.clock_mhz, 1200);
    EXPECT_EQ(state.most_clock_mhz, 0);
    EXPECT_THAT(state.processes, testing::ElementsAre("0"));
}

TEST(gpu_state, clocks_are_held_down_by_what_is_a_fault_only) {
    for (auto const& [bits, words] : {std::pair(0x1 | 0x2 | 0x4 | 0x10 | 0x100, ""),
                                      {0x8, "hardware slowdown"},
                                      {0x20, "heat (software)"},
                                      {0x40, "heat (hardware)"},
                                      {0x80, "power brake"},
                                      {0xc0, "heat (hardware), power brake"}}) {
        slowed_by = static_cast<unsigned long long>(bits);
        EXPECT_EQ(read_gpu_states(make_api(), {device("GPU-a")}).at(0).slowed, words) << bits;
    }
    slowed_by = 0;
}

TEST(gpu_state, is_unknown_for_what_the_driver_does_not_know) {
    auto const states = read_gpu_states(make_api(), {device("GPU-b"), device("")});
    ASSERT_EQ(states.size(), 2u);
    for (auto const& state : states) {
        EXPECT_EQ(state.memory_bytes, 0u);
        EXPECT_EQ(state.ecc_errors, -1);
    }
}

TEST(gpu_state, is_unknown_without_the_functions) {
    auto api = make_api();
    api.memory = nullptr;
    api.processes = nullptr;
    EXPECT_EQ(read_gpu_states(api, {device("GPU-a")}).at(0).memory_bytes, 0u);
    EXPECT_EQ(read_gpu_states(nvml_gpu_api{}, {device("GPU-a")}).at(0).ecc_errors, -1);
}

TEST(gpu_state, many_processes_are_counted) {
    auto api = make_api();
    api.processes = [](nvml_device, unsigned* count, nvml_process*) {
        *count = 100;
        return insufficient_size;
    };
    EXPECT_THAT(read_gpu_states(api, {device("GPU-a")}).at(0).processes, testing::ElementsAre("100 processes"));
}

}  // namespace
}  // namespace muster
