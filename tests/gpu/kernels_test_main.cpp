// The main of tests on one GPU: skips (77), saying why, where there is none. `--driver=FILE` takes another library for the
// driver.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string_view>

#include "comm/cuda/fusion_kernels.hpp"
#include "kernels_test.hpp"

namespace muster::test {

namespace {
std::shared_ptr<cuda::device const> chosen;
std::shared_ptr<cuda::fusion_kernels const> loaded;
bool fake = false;
}  // namespace

std::shared_ptr<cuda::device const> const& gpu() {
    return chosen;
}

std::shared_ptr<cuda::fusion_kernels const> const& kernels() {
    if (!loaded) loaded = cuda::fusion_kernels::load(chosen);
    return loaded;
}

bool on_fake() {
    return fake;
}

namespace {

int run(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::array<std::string, 1> file;
    for (int i = 1; i < argc; ++i)
        if (std::string_view const word = argv[i]; word.starts_with("--driver=")) file[0] = word.substr(9);
    auto const found = file[0].empty() ? cuda::find_driver() : cuda::find_driver(file);
    auto const missing = cuda::kernels_missing();
    if (found.use == nullptr || missing) {
        std::printf("SKIPPED: %s\n", missing ? missing->c_str() : found.why_not.c_str());
        return 77;
    }
    chosen = cuda::device::open(found, 0);
    std::printf("on %s (%s)%s\n", chosen->name().c_str(), chosen->uuid().c_str(),
                file[0].empty() ? "" : ", which is what another library than libcuda.so.1 says");
    fake = !file[0].empty();
    int const result = RUN_ALL_TESTS();
    loaded.reset();
    chosen.reset();
    return result;
}

}  // namespace

}  // namespace muster::test

int main(int argc, char** argv) try { return muster::test::run(argc, argv); } catch (std::exception const& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
