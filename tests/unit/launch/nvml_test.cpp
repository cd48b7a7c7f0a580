// A made-up NVML: its functions answer from the table below, as the "NVML API Reference Guide" says they do.
#include "launch/hardware/nvml.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace muster {
namespace {

using testing::HasSubstr;

constexpr int success = 0, not_supported = 3, no_permission = 4, not_found = 6, driver_not_loaded = 9, lost = 15;

struct fake_device {
    std::string uuid;
    unsigned bus = 0;
    int handle_result = success;
    bool mig = false;
    std::vector<fake_device> slices;  ///< an empty UUID: no slice at that number
    unsigned gpu_instance = 0;
    unsigned domain = 0;
};

struct fake_nvml {
    int init_result = success;
    std::vector<fake_device> devices;
    int open = 0;
};
fake_nvml fake;

fake_device& device_of(nvml_device handle) {
    return *reinterpret_cast<fake_device*>(handle);
}
nvml_device handle_of(fake_device& device) {
    return reinterpret_cast<nvml_device>(&device);
}
int give(std::string const& text, char* to, unsigned size) {
    if (text.size() + 1 > size) return 7;
    std::memcpy(to, text.c_str(), text.size() + 1);
    return success;
}

nvml_api make_api() {
    nvml_api api;
    api.init = [] {
        if (fake.init_result == success) ++fake.open;
        return fake.init_result;
    };
    api.shutdown = [] {
        --fake.open;
        return success;
    };
    api.error_string = [](int rc) { return rc == driver_not_loaded ? "Driver Not Loaded" : "GPU is lost"; };
    api.count = [](unsigned* count) {
        *count = static_cast<unsigned>(fake.devices.size());
        return success;
    };
    api.handle = [](unsigned i, nvml_device* handle) {
        auto& device = fake.devices.at(i);
        if (device.handle_result == success) *handle = handle_of(device);
        return device.handle_result;
    };
    api.uuid = [](nvml_device d, char* to, unsigned size) { return give(device_of(d).uuid, to, size); };
    api.name = [](nvml_device d, char* to, unsigned size) { return give("A100 " + device_of(d).uuid, to, size); };
    api.pci = [](nvml_device d, nvml_pci_info* pci) {
        *pci = {};
        pci->bus = device_of(d).bus;
        pci->domain = device_of(d).domain;
        return success;
    };
    api.driver = [](char* to, unsigned size) { return give("535.54", to, size); };
    api.mig_mode = [](nvml_device d, unsigned* current, unsigned* pending) {
        *current = *pending = device_of(d).mig;
        return device_of(d).mig ? success : not_supported;
    };
    api.mig_count = [](nvml_device d, unsigned* count) {
        *count = static_cast<unsigned>(device_of(d).slices.size());
        return success;
    };
    api.mig_handle = [](nvml_device d, unsigned i, nvml_device* slice) {
        auto& found = device_of(d).slices.at(i);
        if (found.uuid.empty()) return not_found;
        *slice = handle_of(found);
        return success;
    };
    api.gpu_instance = [](nvml_device d, unsigned* id) {
        *id = device_of(d).gpu_instance;
        return success;
    };
    api.compute_instance = [](nvml_device, unsigned* id) {
        *id = 0;
        return success;
    };
    return api;
}

gpu_list read(std::vector<fake_device> devices, int init_result = success) {
    fake = {init_result, std::move(devices), 0};
    auto list = read_nvml_gpus(make_api(), sysfs("/nonexistent"));
    EXPECT_EQ(fake.open, 0);
    return list;
}

TEST(nvml, gpus_come_in_the_order_of_their_addresses) {
    auto const list = read({{"GPU-c", 0x81}, {"GPU-a", 0x07}, {"GPU-d", 0x01, success, false, {}, 0, 0x10000}, {"GPU-b", 0x47}});
    ASSERT_EQ(list.gpus.size(), 4u);
    EXPECT_EQ(list.gpus[0].uuid, "GPU-a");
    EXPECT_EQ(list.gpus[0].pci, "0000:07:00.0");
    EXPECT_EQ(list.gpus[2].pci, "0000:81:00.0");
    EXPECT_EQ(list.gpus[2].index, 2);
    EXPECT_EQ(list.gpus[3].pci, "10000:01:00.0");
    EXPECT_EQ(list.gpus[0].numa, -1);
    EXPECT_EQ(list.note, "NVML, driver 535.54");
}

TEST(nvml, gpus_that_cannot_be_opened_are_left_out_and_do_not_count) {
    auto const list = read({{"GPU-a", 1, no_permission}, {"GPU-b", 2}, {"GPU-c", 3, lost}, {"GPU-d", 4}});
    ASSERT_EQ(list.gpus.size(), 2u);
    EXPECT_EQ(list.gpus[0].uuid, "GPU-b");
    EXPECT_EQ(list.gpus[0].index, 0);
    EXPECT_EQ(list.gpus[1].index, 1);
    EXPECT_EQ(list.note, "NVML, driver 535.54; device 2: GPU is lost; 1 not for this process");
}

TEST(nvml, slices_stand_in_for_their_gpu) {
    fake_device split{"GPU-b", 2, success, true, {{"MIG-x", 0, success, false, {}, 7}, {}, {"MIG-y", 0, success, false, {}, 9}}};
    auto const list = read({{"GPU-a", 1}, split, {"GPU-c", 3, success, true, {}}});
    ASSERT_EQ(list.gpus.size(), 3u);
    EXPECT_FALSE(list.gpus[0].mig);
    EXPECT_EQ(list.gpus[1].uuid, "MIG-x");
    EXPECT_EQ(list.gpus[1].index, 1);
    EXPECT_EQ(list.gpus[1].mig, (mig_slice{"GPU-b", 7, 0}));
    EXPECT_EQ(list.gpus[2].mig, (mig_slice{"GPU-b", 9, 0}));
    EXPECT_EQ(list.gpus[2].pci, "0000:02:00.0");
    EXPECT_THAT(list.note, HasSubstr("GPU 2 is in MIG mode and has no slice"));
}

TEST(nvml, without_a_driver_says_so) {
    auto const list = read({{"GPU-a", 1}}, driver_not_loaded);
    EXPECT_TRUE(list.gpus.empty());
    EXPECT_EQ(list.note, "NVML: Driver Not Loaded");
    EXPECT_EQ(read({}).note, "NVML, driver 535.54, no GPU");
}

TEST(nvml, without_the_library_says_so) {
    EXPECT_FALSE(read_nvml_gpus(sysfs()).note.empty());
}

TEST(nvml, of_version_10_knows_no_slices) {
    fake = {success, {{"GPU-a", 1, success, true, {}}}, 0};
    auto api = make_api();
    api.mig_mode = nullptr;
    EXPECT_TRUE(api.complete());
    EXPECT_EQ(read_nvml_gpus(api, sysfs("/nonexistent")).gpus.size(), 1u);
}

}  // namespace
}  // namespace muster
