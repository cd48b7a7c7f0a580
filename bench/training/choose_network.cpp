#include "bench/training/choose_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "bench/network/published/cifar_network.hpp"
#include "bench/network/published/mnist_network.hpp"

namespace muster {

namespace {

constexpr std::array networks{network_facts{"mnist", mnist_network::images, 60'000, 10'000},
                              network_facts{"cifar10", cifar_network::images, 50'000, 10'000}};

}  // namespace

network_facts const& facts_of_network(std::string_view name) {
    auto const found = std::find_if(networks.begin(), networks.end(), [&](auto const& each) { return each.name == name; });
    if (found == networks.end())
        throw error(errc::usage, fmt::format("--net is '{}', expected mnist, cifar10, resnet50 or gpt2-small", name));
    return *found;
}

std::size_t default_bucket_bytes(std::string_view name) noexcept {
    return name == "mnist" ? std::size_t{64} << 10 : std::size_t{1} << 20;
}

network make_network(std::string_view name, int max_batch, kernel_table const& kernels, float dropout) {
    if (facts_of_network(name).name == "mnist") return mnist_network(max_batch, kernels, dropout);
    return cifar_network(max_batch, kernels, dropout);
}

}  // namespace muster
