// Delivers batches out of pinned memory of the FAKE CUDA driver: where the program has a context, where it says so, and not else.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/cuda/handles.hpp"
#include "io/dataset/dataset_writer.hpp"
#include "io/loader/loader.hpp"

namespace muster {
namespace {

constexpr std::size_t samples = 100, bytes = 12;

void require(bool holds, char const* what) {
    if (!holds) throw std::runtime_error(what);
}

void make_dataset(std::string const& path) {
    split_plan plan;
    plan.split = "train";
    plan.samples = samples;
    plan.shape = {1, 3, 4};
    writer_options options;
    options.durable = false;
    dataset_writer writer(path, {plan}, options);
    std::vector<std::uint8_t> pixels(samples * bytes);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i);
    for (hyperslab const& rows : writer.share(0))
        writer.write(0, rows, std::span(pixels).subspan(rows.first * bytes, rows.count * bytes), {});
    writer.close();
}

void deliver(dataset const& from, std::optional<bool> asked, bool expected) {
    for (std::size_t const prefetch : {0u, 3u}) {
        loader loads(from, sampler(samples), {.batch = 7, .prefetch = prefetch, .pinned = asked});
        require(loads.options().pinned == expected, "the loader chose the other kind of memory");
        std::size_t seen = 0;
        for (batch const& next : loads.epoch(0))
            for (std::size_t i = 0; i < next.count; ++i, ++seen)
                for (std::size_t k = 0; k < bytes; ++k)
                    require(next.images[i * bytes + k] == static_cast<std::uint8_t>(next.samples[i] * bytes + k),
                            "a batch has other contents");
        require(seen == samples, "samples are missing");
    }
}

void run(std::string const& path) {
    make_dataset(path);
    dataset const from = dataset::open(path);
    require(!cuda::uses_gpu(), "a context before there is one");
    deliver(from, std::nullopt, false);
    deliver(from, true, true);
    auto const device = cuda::device::open(cuda::find_driver(), 0);
    cuda::device::scope const current(*device);
    require(cuda::uses_gpu(), "the context was not seen");
    deliver(from, std::nullopt, true);
    deliver(from, false, false);
}

}  // namespace
}  // namespace muster

int main() {
    std::string folder = (std::filesystem::temp_directory_path() / "muster-pinned.XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return 1;
    int code = 0;
    try {
        muster::run(folder + "/data.h5");
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "loader_main: %s\n", problem.what());
        code = 1;
    }
    std::filesystem::remove_all(folder);
    return code;
}
