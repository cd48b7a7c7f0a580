#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/cpuset.hpp"
#include "base/process/files.hpp"
#include "base/throw_error.hpp"
#include "bench/collectives/rank/measured_rank.hpp"
#include "bench/gpu/gpu_check.hpp"
#include "bench/tools/machine.hpp"
#include "comm/backend/pmix_rendezvous.hpp"
#include "comm/communicator.hpp"
#include "comm/cuda/fusion_kernels.hpp"
#include "comm/exchange/exchange.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace {

constexpr duration step_deadline{60};

/// Reports that the step cannot run here.
int not_run(std::string const& why) {
    fmt::print("{}\n", why);
    return gpu_step_not_run;
}

int wrong(std::string const& what) {
    fmt::print("{}\n", what);
    return 1;
}

/// Returns the GPU of this rank; ranks that share GPUs take them in turn by their number.
std::shared_ptr<cuda::device const> gpu_of_rank(identity const& who, int asked) {
    auto const& found = cuda::find_driver();
    return cuda::device::open(found, cuda::choose_device(found, asked, who.local_rank % found.devices));
}

std::string version_text(int number) {
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

// The driver and what it shows.

int look_at_driver() {
    auto const& found = cuda::find_driver();
    if (found.use == nullptr) return not_run(found.why_not);
    int number = 0;
    cuda::check(*found.use, found.use->version(&number), "cuDriverGetVersion");
    auto const module = read_text_file("/proc/driver/nvidia/version");
    fmt::print("CUDA of the driver\t{}\n", version_text(number));
    if (!module.empty()) fmt::print("driver\t{}\n", module.substr(0, module.find('\n')));
    for (int i = 0; i < found.devices; ++i) {
        auto const on = cuda::device::open(found, i);
        fmt::print("GPU {}\t{}, {} multiprocessors\n", i, on->name(), on->multiprocessors());
    }
    auto const nccl = nccl::find_library();
    fmt::print("NCCL\t{}\n", nccl.use == nullptr ? nccl.why_not : nccl::version_text(nccl.version));
    return 0;
}

// Every rank must have cores next to its GPU that no other rank has.

/// Returns the cores next to a GPU, as the kernel knows them; empty if it does not.
cpuset cores_of_gpu(cuda::driver const& with, int ordinal) {
    constexpr int bus_attribute = 33, slot_attribute = 34, domain_attribute = 50;  // CU_DEVICE_ATTRIBUTE_PCI_* of cuda.h
    int device = 0, domain = 0, bus = 0, slot = 0;
    bool const known = with.device_get(&device, ordinal) == cuda::success &&
                       with.device_attribute(&bus, bus_attribute, device) == cuda::success &&
                       with.device_attribute(&slot, slot_attribute, device) == cuda::success &&
                       with.device_attribute(&domain, domain_attribute, device) == cuda::success;
    if (!known) return {};
    auto const list = read_text_file(fmt::format("/sys/bus/pci/devices/{:04x}:{:02x}:{:02x}.0/local_cpulist", domain, bus, slot));
    return cpuset::from_list(trim(list), "local_cpulist");
}

int check_binding(identity const& who, environment const& variables) {
    auto const on = gpu_of_rank(who, read_exchange_options(variables).comm.device);
    auto const mine = allowed_cpus(), near = cores_of_gpu(on->with(), on->ordinal());
    auto const uuids = gather_by_pmix(who, "muster.gpu-check.binding", std::as_bytes(std::span(on->uuid())), step_deadline);
    fmt::print("rank {} on {}: {}, cores {}, next to the GPU {}\n", who.rank, who.host, on->name(), mine.to_list(),
               near.empty() ? "not known" : near.to_list());
    bool const shared = variables.get_or("NCCL_HOSTID", "").starts_with("muster-");  // gpu-check sets it so if ranks share GPUs
    auto const same = std::count(uuids.begin(), uuids.end(), uuids[static_cast<std::size_t>(who.rank)]);
    if (!shared && same != 1)
        return wrong(fmt::format("rank {} on {}: {} ranks have its GPU {}", who.rank, who.host, same, on->uuid()));
    if (!near.empty() && intersect(mine, near).empty())
        return wrong(fmt::format("rank {} on {}: none of its cores is next to its GPU", who.rank, who.host));
    return 0;
}

// The kernels that pack gradients are compared with the processor's arithmetic.

constexpr std::size_t tensors_of_kernels = 200, unwritten = 0xff;

std::size_t count_of_tensor(std::size_t i) noexcept {
    return i % 50 == 7 ? 100'003 : 1 + 37 * i;
}

float value_at(std::size_t k) noexcept {
    return static_cast<float>(static_cast<int>(k % 4001) - 2000) / 16;
}

/// Moves tensors of `From` at odd places to tensors of `To`, times `factor`. Returns how many elements are wrong, gaps included.
template <typename From, typename To>
std::size_t wrong_after_kernel(std::shared_ptr<cuda::fusion_kernels const> const& kernels, float factor) {
    std::size_t elements = 0;
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < tensors_of_kernels; ++i) {
        first.push_back(elements);
        elements += count_of_tensor(i) + 1 + i % 5;  // with a gap to which nothing is written
    }
    std::vector<From> source(elements);
    for (std::size_t k = 0; k < elements; ++k) source[k] = static_cast<From>(value_at(k));
    std::vector<To> expected(elements);
    std::memset(static_cast<void*>(expected.data()), unwritten, elements * sizeof(To));
    collectives_memory in(elements * sizeof(From), &kernels->on()), out(elements * sizeof(To), &kernels->on());
    in.write([&](std::byte* to) { std::memcpy(to, source.data(), elements * sizeof(From)); });
    out.write([&](std::byte* to) { std::memset(to, unwritten, elements * sizeof(To)); });
    std::vector<tensor_view> from, to;
    for (std::size_t i = 0; i < tensors_of_kernels; ++i) {
        auto const count = count_of_tensor(i);
        from.push_back(in.view(first[i] * sizeof(From), count, dtype_of<From>()));
        to.push_back(out.view(first[i] * sizeof(To), count, dtype_of<To>()));
        for (std::size_t k = first[i]; k < first[i] + count; ++k)
            expected[k] = static_cast<To>(static_cast<float>(source[k]) * factor);
    }
    cuda::fusion_launch launch(kernels);
    launch.prepare(from, to, static_cast<double>(factor), nullptr);
    launch.run(nullptr);
    return out.read([&](std::byte const* raw) {
        std::size_t bad = 0;
        for (std::size_t k = 0; k < elements; ++k) bad += std::memcmp(raw + k * sizeof(To), &expected[k], sizeof(To)) != 0;
        return bad;
    });
}

int check_kernels() {
    if (auto const why = cuda::kernels_missing()) return not_run(*why);
    auto const kernels = cuda::fusion_kernels::load(cuda::device::open(cuda::find_driver(), 0));
    std::pair<char const*, std::size_t> const found[]{
        {"f32 to f32", wrong_after_kernel<float, float>(kernels, 0.25f)},
        {"f32 to f16", wrong_after_kernel<float, half>(kernels, 1)},
        {"f32 to bf16", wrong_after_kernel<float, bfloat16>(kernels, 0.5f)},
        {"bf16 to f32", wrong_after_kernel<bfloat16, float>(kernels, 3)},
        {"f16 to f16", wrong_after_kernel<half, half>(kernels, 0.5f)},
    };
    std::size_t all = 0;
    for (auto const& [way, bad] : found) {
        fmt::print("{}: {} elements wrong\n", way, bad);
        all += bad;
    }
    return all == 0 ? 0 : 1;
}

// All collectives of the nccl backend are tried: every type and reduction, out of place and in place.

int check_nccl(identity const& who, environment const& variables) {
    comm_options options = read_exchange_options(variables).comm;
    options.backend = "nccl";
    options.memory = memory_kind::device;
    options.deadline = step_deadline;
    if (auto const why = nccl_unavailable(who, options)) return not_run(*why);
    auto const on = gpu_of_rank(who, options.device);
    options.device = on->ordinal();
    communicator all = communicator::create(who, options);
    auto by = way_over(all);
    by.gpu = on.get();
    measured_rank measured(by);
    auto const cases = cases_of(parse_kinds("all"), parse_types("all"), parse_reductions("all"), who.world_size - 1);
    std::size_t bad = 0;
    for (auto const& each : cases) {
        measured.choose(each, rule_for(each, who.world_size));
        for (std::size_t const size : {std::size_t{8}, std::size_t{40'000}, std::size_t{1} << 20}) {
            std::size_t const bytes[]{fitting_bytes(each, size, who.world_size)};
            measured.make(1, bytes);
            for (bool const in_place : {false, true})
                if (each.has_place(in_place)) bad += measured.run(7, in_place).wrong;
        }
    }
    fmt::print("rank {} on {}: {} collectives by {}, {} elements wrong\n", who.rank, who.host, cases.size(), all.backend(), bad);
    return bad == 0 ? 0 : 1;
}

// Named tensors in device memory go through the exchange, in another order on each rank.

/// One tensor on the GPU, in place.
struct device_tensor {
    device_tensor(cuda::device const& on, std::size_t elements, float value)
        : memory(elements * sizeof(float), &on), count(elements) {
        memory.write([&](std::byte* to) { std::fill_n(std::bit_cast<float*>(to), elements, value); });
    }
    tensor_view view() { return memory.view(0, count, dtype::f32); }
    std::size_t differing(float expected) const {
        return memory.read([&](std::byte const* raw) {
            auto const* const values = std::bit_cast<float const*>(raw);
            return count - static_cast<std::size_t>(std::count(values, values + count, expected));
        });
    }
    collectives_memory memory;
    std::size_t count;
};

/// Sums tensors through the exchange, each sent as `wire`; returns how many elements are wrong.
std::size_t wrong_after_exchange(exchange& all, cuda::device const& on, compression wire) {
    constexpr std::size_t tensors = 161;
    std::vector<device_tensor> given;
    given.reserve(tensors);
    for (std::size_t i = 0; i < tensors; ++i) given.emplace_back(on, 1 + 997 * i, static_cast<float>(all.rank() + 1));
    exchange_call call;
    call.wire = wire;
    std::vector<exchange_handle> handles;
    for (std::size_t k = 0; k < tensors; ++k) {
        auto const i = (30 * k + static_cast<std::size_t>(all.rank())) % tensors;
        handles.push_back(
            all.allreduce(fmt::format("{}.{}", to_string(wire), i), given[i].view(), given[i].view(), reduction::sum, call));
    }
    for (auto const& each : handles) each.wait();
    auto const sum = static_cast<float>(all.size() * (all.size() + 1) / 2);
    return std::transform_reduce(given.begin(), given.end(), std::size_t{0}, std::plus(),
                                 [&](auto const& each) { return each.differing(sum); });
}

int check_exchange(identity const& who, environment const& variables) {
    auto options = read_exchange_options(variables);
    if (auto const why = nccl_unavailable(who, options.comm)) return not_run(*why);
    if (auto const why = cuda::kernels_missing()) return not_run(*why);
    auto const on = gpu_of_rank(who, options.comm.device);
    options.comm.device = on->ordinal();
    options.deadline = step_deadline;
    exchange all(who, options);
    auto const plain = wrong_after_exchange(all, *on, compression::none);
    auto const narrow = wrong_after_exchange(all, *on, compression::bf16);
    device_tensor root(*on, 1000, static_cast<float>(who.rank));
    all.broadcast("root", root.view(), root.view(), who.world_size - 1).wait();
    auto const sent = root.differing(static_cast<float>(who.world_size - 1));
    fmt::print("rank {} on {}: device memory by {}; elements wrong: {} of allreduce, {} as bf16, {} of broadcast\n", who.rank,
               who.host, all.device_backend(), plain, narrow, sent);
    return plain + narrow + sent == 0 ? 0 : 1;
}

}  // namespace

constexpr command_row gpu_check_step_row{.name = "gpu-check-step", .hidden = true};

int gpu_check_step(std::vector<std::string> const& args, environment const& variables) {
    if (args.size() != 1) throw error(errc::usage, "gpu-check-step: not to be started by hand; give muster-bench gpu-check");
    if (args[0] == "driver") return look_at_driver();
    if (auto const& found = cuda::find_driver(); found.use == nullptr) return not_run(found.why_not);
    if (args[0] == "kernels") return check_kernels();
    if (args[0] == "binding") return check_binding(identify(variables), variables);
    if (args[0] == "nccl") return check_nccl(identify(variables), variables);
    if (args[0] == "exchange") return check_exchange(identify(variables), variables);
    throw_error(errc::usage, "gpu-check-step: no step '{}'; give muster-bench gpu-check", args[0]);
}

}  // namespace muster
