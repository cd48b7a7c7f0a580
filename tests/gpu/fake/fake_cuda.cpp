// The driver's half of the fake: see fake_gpu.hpp.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

#include "blackboard.hpp"
#include "comm/cuda/driver.hpp"
#include "comm/cuda/fusion_body.hpp"
#include "fake_gpu.hpp"

namespace muster::fake {

machine& the_machine() {
    static auto& only = *new machine;
    return only;
}

void machine::run() {
    if (knob("freeze") != 0) return;
    bool const last_first = knob("last_first") != 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t i = 0; i < streams.size() && !(moved && last_first); ++i) {
            stream* const each = streams[last_first ? streams.size() - 1 - i : i];
            while ((each != &default_stream || knob("freeze_default") == 0) && !each->tasks.empty() && !(moved && last_first) &&
                   each->tasks.front()()) {
                each->tasks.pop_front();
                moved = true;
            }
        }
    }
    std::erase_if(streams, [](stream* each) {
        bool const over = each->destroyed && each->tasks.empty();
        if (over) delete each;
        return over;
    });
}

/// Ranks that are threads of one process share the default stream: it is no device's then.
bool machine::is_idle(void const* context) const {
    return std::all_of(streams.begin(), streams.end(), [&](stream const* each) {
        bool const counts = each == &default_stream ? goes_by_itself : each->context == context;
        return !counts || each->tasks.empty();
    });
}

namespace {

stream& stream_of(void* handle) {
    return handle == nullptr ? the_machine().default_stream : *static_cast<stream*>(handle);
}

/// Which kernels there are, and how each is run with its two arguments, by value.
using runner = void (*)(std::byte const* first, std::byte const* second, unsigned blocks, unsigned threads);

template <typename T>
T read_argument(std::byte const* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <typename Way>
void run_fusion(std::byte const* first, std::byte const* second, unsigned blocks, unsigned threads) {
    auto const work = read_argument<cuda::fusion_work>(first);
    auto const by = read_argument<typename Way::factor>(second);
    for (unsigned block = 0; block < blocks; ++block)
        for (unsigned thread = 0; thread < threads; ++thread) cuda::run_thread<Way>(work, by, block, thread, threads);
}

struct kernel {
    std::string_view name;
    runner run;
    std::size_t first_bytes;
    std::size_t second_bytes;
};

constexpr std::array kernels{
#define MUSTER_ROW(way) \
    kernel{"muster_" #way, run_fusion<cuda::ways::way>, sizeof(cuda::fusion_work), sizeof(cuda::ways::way::factor)},
    MUSTER_FUSION_WAYS(MUSTER_ROW)
#undef MUSTER_ROW
};

}  // namespace

}  // namespace muster::fake

using namespace muster::fake;
using guard = std::scoped_lock<std::mutex>;

namespace {

constexpr int ok = 0;
constexpr int invalid_context = 201;
constexpr int not_ready = 600;
thread_local std::vector<void*> contexts;
std::array<char, 64> contexts_of_devices{};
int only_module = 0;

/// Asks `through` while streams run, for a minute at most. What it waits for may be up to another process, which tells by a file:
/// so it looks again and again, with a nap in between, as a driver spins.
template <typename Through>
int wait_until(Through&& through) {
    auto const end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    do {
        {
            guard const held(the_machine().lock);
            the_machine().pump();
            if (through()) return ok;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    } while (std::chrono::steady_clock::now() < end);
    return not_ready;
}

/// Runs the streams where ranks are processes, since a device goes on whether or not its process asks; the nap is its clock.
void go_by_itself() {
    while (true) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        guard const held(the_machine().lock);
        the_machine().run();
    }
}

/// Whether the thread has made no context current, as the real driver demands for most calls, and the fake where ranks are
/// processes.
bool lacks_context() {
    return !the_blackboard().in_memory() && contexts.empty();
}

/// Frees memory, by `release`, once the device is through with what it was given before, as the driver does: until then the device may read and write it.
template <typename Release>
int free_behind_work(Release&& release) {
    if (lacks_context()) return invalid_context;
    void const* const context = contexts.empty() ? nullptr : contexts.back();
    {
        guard const held(the_machine().lock);
        the_machine().pump();
        if (!the_machine().is_idle(context)) the_machine().note("memory is freed once the device is through");
    }
    int const code = wait_until([&] { return the_machine().is_idle(context); });
    if (code == ok) release();
    return code;
}

}  // namespace

int muster::fake::put_on(void* on, task what) {
    if (lacks_context()) return invalid_context;
    guard const held(the_machine().lock);
    stream_of(on).tasks.push_back(std::move(what));
    the_machine().pump();
    return ok;
}

int muster::fake::put_work(void* on, std::function<void()> work) {
    return put_on(on, [work = std::move(work)] {
        work();
        return true;
    });
}

extern "C" {

void fake_set(char const* knob, int value) {
    guard const held(the_machine().lock);
    the_machine().knobs[knob] = value;
    the_machine().pump();
}
void fake_reset() {
    guard const held(the_machine().lock);
    the_machine().knobs.clear();
    the_machine().log.clear();
}
void fake_log(char* into, unsigned long size) {
    guard const held(the_machine().lock);
    std::strncpy(into, the_machine().log.c_str(), size - 1);
    into[size - 1] = '\0';
}

int cuInit(unsigned) {
    guard const held(the_machine().lock);
    if (!the_blackboard().in_memory() && !std::exchange(the_machine().goes_by_itself, true)) std::thread(go_by_itself).detach();
    return the_machine().knob("init_code");
}
int cuDriverGetVersion(int* version) {
    *version = 13000;
    return ok;
}
int cuGetErrorName(int code, char const** name) {
    *name = code == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OF_THE_FAKE";
    return ok;
}
int cuGetErrorString(int, char const** text) {
    *text = "told by the fake driver";
    return ok;
}
int cuDeviceGetCount(int* count) {
    guard const held(the_machine().lock);
    *count = the_machine().knob("devices", 4);
    return ok;
}
int cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return ok;
}
int cuDeviceGetName(char* name, int size, int) {
    std::strncpy(name, "fake GPU", static_cast<std::size_t>(size));
    return ok;
}
int cuDeviceGetUuid(muster::cuda::device_uuid* uuid, int device) {
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    uuid->bytes[15] = static_cast<char>(device);
    return ok;
}
int cuDeviceGetAttribute(int* value, int which, int) {
    *value = which == muster::cuda::attribute_clock_khz ? 1'000'000 : 2;
    return ok;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    *context = &contexts_of_devices.at(static_cast<std::size_t>(device));
    return ok;
}
int cuDevicePrimaryCtxRelease_v2(int) {
    return ok;
}
int cuCtxPushCurrent_v2(void* context) {
    contexts.push_back(context);
    return ok;
}
int cuCtxPopCurrent_v2(void** context) {
    *context = contexts.back();
    contexts.pop_back();
    return ok;
}
int cuCtxGetCurrent(void** context) {
    *context = contexts.empty() ? nullptr : contexts.back();
    return ok;
}
int cuCtxGetDevice(int* device) {
    *device = 0;
    return ok;
}
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return ok;
}
int cuStreamCreateWithPriority(void** handle, unsigned, int) {
    if (lacks_context()) return invalid_context;
    guard const held(the_machine().lock);
    auto* const made = new stream;
    made->context = contexts.empty() ? nullptr : contexts.back();
    the_machine().streams.push_back(made);
    *handle = made;
    return ok;
}
int cuStreamDestroy_v2(void* handle) {
    guard const held(the_machine().lock);
    the_machine().pump();
    auto* const which = static_cast<stream*>(handle);
    if (!which->tasks.empty()) {
        the_machine().note("cuStreamDestroy of a stream that has work");
        which->destroyed = true;
        return ok;
    }
    std::erase(the_machine().streams, which);
    delete which;
    return ok;
}
int cuStreamWaitEvent(void* handle, void* which, unsigned) {
    auto const last = [&] {
        guard const held(the_machine().lock);
        return static_cast<event*>(which)->last;
    }();
    return last ? put_on(handle, [last] { return last->passed; }) : ok;
}
int cuStreamSynchronize(void* handle) {
    return wait_until([handle] { return stream_of(handle).tasks.empty(); });
}
int cuEventCreate(void** handle, unsigned) {
    if (lacks_context()) return invalid_context;
    *handle = new event;
    return ok;
}
int cuEventDestroy_v2(void* handle) {
    delete static_cast<event*>(handle);
    return ok;
}
int cuEventRecord(void* which, void* on) {
    auto const mark = std::make_shared<marker>();
    {
        guard const held(the_machine().lock);
        static_cast<event*>(which)->last = mark;
    }
    return put_on(on, [mark] { return mark->passed = true; });
}
int cuEventQuery(void* which) {
    guard const held(the_machine().lock);
    the_machine().pump();
    auto const& last = static_cast<event*>(which)->last;
    return !last || last->passed ? ok : not_ready;
}
int cuEventSynchronize(void* which) {
    return wait_until([which] { return !static_cast<event*>(which)->last || static_cast<event*>(which)->last->passed; });
}
int cuEventElapsedTime(float* milliseconds, void*, void*) {
    *milliseconds = 1;
    return ok;
}
int cuMemAlloc_v2(unsigned long long* address, std::size_t bytes) {
    if (lacks_context()) return invalid_context;
    *address = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
    return ok;
}
int cuMemFree_v2(unsigned long long address) {
    return free_behind_work([&] { std::free(reinterpret_cast<void*>(address)); });
}
int cuMemAllocHost_v2(void** address, std::size_t bytes) {
    if (lacks_context()) return invalid_context;
    *address = std::malloc(bytes);
    return ok;
}
int cuMemFreeHost(void* address) {
    return free_behind_work([&] { std::free(address); });
}
int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, std::size_t bytes, void* on) {
    return put_work(on, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void const*>(from), bytes); });
}
int cuMemcpyHtoDAsync_v2(unsigned long long to, void const* from, std::size_t bytes, void* on) {
    return put_work(on, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, std::size_t bytes, void* on) {
    return put_work(on, [=] { std::memcpy(to, reinterpret_cast<void const*>(from), bytes); });
}
int cuMemsetD8Async(unsigned long long to, unsigned char value, std::size_t bytes, void* on) {
    return put_work(on, [=] { std::memset(reinterpret_cast<void*>(to), value, bytes); });
}
int cuModuleLoadData(void** module, void const*) {
    *module = &only_module;
    return ok;
}
int cuModuleUnload(void*) {
    return ok;
}
int cuModuleGetFunction(void** function, void*, char const* name) {
    for (auto const& each : kernels)
        if (each.name == name) {
            *function = const_cast<kernel*>(&each);
            return ok;
        }
    return 500;  // CUDA_ERROR_NOT_FOUND
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int, std::size_t) {
    *blocks = 2;
    return ok;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, void* on,
                   void** arguments, void**) {
    auto const* const which = static_cast<kernel const*>(function);
    auto const bytes = [&](int argument, std::size_t count) {
        auto const* const begin = static_cast<std::byte const*>(arguments[argument]);
        return muster::fake::bytes{begin, begin + count};
    };
    return put_work(on, [which, blocks, threads, first = bytes(0, which->first_bytes), second = bytes(1, which->second_bytes)] {
        which->run(first.data(), second.data(), blocks, threads);
    });
}
}
