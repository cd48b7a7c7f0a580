#include "bench/predict/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bench/tools/checked_json.hpp"

namespace muster {

namespace {

constexpr char const* nvlink_share =
    "assumed: NVLink carries 0.92 of its rate as data, the rest being headers; the same of all generations";
constexpr char const* slingshot_rate =
    "one Slingshot 11 card moves 24.3 GB/s of 25: Mochi's nightly test on Polaris, PULL of 1 MiB by 8 threads, "
    "23,166 MiB/s (mochi-hpc-experiments, 27 November 2025)";
constexpr char const* a100_memory =
    "memory 1,555 GB/s: as NVIDIA gives it for the A100 of 40 GB; not checked against its data sheet";
constexpr char const* latency_guess = "latencies are assumed: 3 us within a node and 5 us between nodes, from GPU to GPU";

std::vector<platform_model> make_table() {
    platform_model const a100{
        .name = "dgx-a100",
        .description = "DGX A100 with 8 x HDR InfiniBand",
        .ranks_a_node = 8,
        .port_gbs = 276,
        .local_latency_us = 3,
        .pcie_gbs = 26,
        .cards = 8,
        .card_gbs = 24,
        .network_latency_us = 5,
        .memory_gbs = 1555,
        .sources = {"12 NVLinks of 25 GB/s a direction to 6 NVSwitches, 8 cards of 200 Gb/s, PCIe 4.0 x16: as NVIDIA gives them "
                    "for the DGX A100 of 2020; not checked against its document",
                    nvlink_share, "one HDR200 port: 24 GB/s (published nccl-tests figure)", a100_memory, latency_guess}};
    auto h100 = a100;
    h100.name = "dgx-h100";
    h100.description = "DGX H100 with 8 x NDR InfiniBand";
    h100.port_gbs = 414;
    h100.pcie_gbs = 52;
    h100.card_gbs = 48;
    h100.memory_gbs = 3350;
    h100.sources = {
        "18 NVLinks of 25 GB/s a direction to 4 NVSwitches, 8 cards of 400 Gb/s, PCIe 5.0 x16: as NVIDIA gives them "
        "for the DGX H100 of 2022; not checked against its document",
        nvlink_share,
        "one NDR port: 48 GB/s, twice that of HDR (assumed)",
        "memory 3,350 GB/s: as NVIDIA gives it for the H100 SXM; not checked against its data sheet",
        "reductions within the switch (NVLS) are not modelled",
        latency_guess};
    auto polaris = a100;
    polaris.name = "polaris";
    polaris.description = "ALCF Polaris: 4 x A100, 2 x Slingshot 11";
    polaris.ranks_a_node = 4;
    polaris.port_gbs = 0;
    polaris.pair_gbs = 92;
    polaris.cards = 2;
    polaris.card_gbs = 24.3;
    polaris.sources = {
        "4 A100-40 with 4 NVLinks of 25 GB/s a direction between each two, 2 Slingshot 11 cards of 200 Gb/s: as ALCF "
        "describes Polaris; not checked against its pages",
        nvlink_share, slingshot_rate, a100_memory, latency_guess};
    auto perlmutter = polaris;
    perlmutter.name = "perlmutter";
    perlmutter.description = "NERSC Perlmutter, GPU nodes: 4 x A100, 4 x Slingshot 11";
    perlmutter.cards = 4;
    perlmutter.sources.front() =
        "4 A100-40 with 4 NVLinks of 25 GB/s a direction between each two, 4 Slingshot 11 cards of 200 "
        "Gb/s: as NERSC describes Perlmutter; not checked against its pages";
    perlmutter.sources.emplace_back("no bus bandwidth of this machine is held against it here");
    return {a100, h100, polaris, perlmutter};
}

}  // namespace

std::span<platform_model const> platform_table() {
    static std::vector<platform_model> const table = make_table();
    return table;
}

std::span<published_rate const> published_rates() {
    static std::vector<published_rate> const rates{
        {"dgx-a100", 8, 235, "8 GPUs by NVLink: 230 to 240 GB/s (published nccl-tests figures)"},
        {"dgx-a100", 16, 192, "nodes with 8 x HDR200: 192 GB/s (published nccl-tests figure)"},
        {"dgx-h100", 8, 367, "8 SXM GPUs, ring: 365 to 370 GB/s (published nccl-tests figures)"},
        {"polaris", 8, 36, "2 nodes: 36 GB/s (published nccl-tests figure)"},
        {"polaris", 32, 36, "8 nodes: 36 GB/s (published nccl-tests figure)"},
    };
    return rates;
}

platform_model const& platform_named(std::string const& name) {
    std::vector<std::string> names;
    for (auto const& each : platform_table()) {
        if (each.name == name) return each;
        names.push_back(each.name);
    }
    throw error(errc::usage, fmt::format("--platform {}: there is no such platform; give one of {}", name, join(names, ", ")));
}

platform_model plain_link(double latency_us, double gbs) {
    return {.name = "link",
            .description = fmt::format("one rank a node, links of {} us and {} GB/s", latency_us, gbs),
            .cards = 1,
            .card_gbs = gbs,
            .network_latency_us = latency_us,
            .sources = {"given on the command line"}};
}

nlohmann::json to_json(platform_model const& model) {
    return {{"name", model.name},
            {"description", model.description},
            {"ranks_a_node", model.ranks_a_node},
            {"port_gbs", model.port_gbs},
            {"pair_gbs", model.pair_gbs},
            {"local_latency_us", model.local_latency_us},
            {"pcie_gbs", model.pcie_gbs},
            {"cards", model.cards},
            {"card_gbs", model.card_gbs},
            {"network_latency_us", model.network_latency_us},
            {"memory_gbs", model.memory_gbs},
            {"sources", model.sources}};
}

platform_model read_platform(nlohmann::json const& document) {
    checked_json const from(document, "the platform");
    platform_model model{.name = from.at("name").text(),
                         .description = from.at("description").text(),
                         .ranks_a_node = static_cast<int>(from.at("ranks_a_node").integer(1, 1024)),
                         .port_gbs = from.at("port_gbs").number(),
                         .pair_gbs = from.at("pair_gbs").number(),
                         .local_latency_us = from.at("local_latency_us").number(),
                         .pcie_gbs = from.at("pcie_gbs").number(),
                         .cards = static_cast<int>(from.at("cards").integer(1, 1024)),
                         .card_gbs = from.at("card_gbs").number(),
                         .network_latency_us = from.at("network_latency_us").number(),
                         .memory_gbs = from.at("memory_gbs").number(),
                         .sources = {}};
    for (auto const& each : from.at("sources").items()) model.sources.push_back(each.text());
    return model;
}

nlohmann::json to_json(simulation_job const& job) {
    return {{"platform", to_json(job.platform)},
            {"ranks", job.ranks},
            {"tensors", job.tensors},
            {"bucket_bytes", job.bucket_bytes},
            {"forward_s", job.forward_s},
            {"backward_s", job.backward_s},
            {"input_s", job.input_s}};
}

simulation_job read_job(nlohmann::json const& document) {
    checked_json const from(document, "the job of the simulator");
    simulation_job job{.platform = read_platform(from.at("platform").value()),
                       .ranks = static_cast<int>(from.at("ranks").integer(1, 1 << 16)),
                       .tensors = {},
                       .bucket_bytes = static_cast<std::size_t>(from.at("bucket_bytes").integer(1, std::int64_t{1} << 40)),
                       .forward_s = from.at("forward_s").number(),
                       .backward_s = from.at("backward_s").number(),
                       .input_s = from.at("input_s").number()};
    for (auto const& each : from.at("tensors").items())
        job.tensors.push_back(static_cast<std::size_t>(each.integer(0, std::int64_t{1} << 40)));
    return job;
}

nlohmann::json to_json(simulation_result const& result) {
    return {{"simulated", true}, {"step_s", result.step_s}, {"exposed_s", result.exposed_s}, {"backend", result.backend}};
}

simulation_result read_result(nlohmann::json const& document) {
    checked_json const from(document, "what the simulator printed");
    return {from.at("step_s").number(), from.at("exposed_s").number(), from.at("backend").text()};
}

}  // namespace muster
