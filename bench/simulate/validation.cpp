#include "bench/simulate/validation.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text_table.hpp"
#include "bench/simulate/run_simulator.hpp"
#include "bench/simulate/simulated_study.hpp"

namespace muster {

namespace {

constexpr std::size_t large_bytes = std::size_t{256} << 20;

}  // namespace

std::vector<validated_rate> validate_platforms(std::string const& platform, environment const& variables) {
    std::vector<validated_rate> rates;
    for (auto const& each : published_rates()) {
        if (!platform.empty() && each.platform != platform) continue;
        simulation_job job;
        job.platform = platform_named(each.platform);
        job.ranks = each.ranks;
        job.bytes = {large_bytes};
        auto const result = run_simulator(job, variables);
        rates.push_back({each, busbw_gbs(large_bytes, result.allreduces.at(0).seconds, each.ranks)});
    }
    return rates;
}

std::string table_of(std::vector<validated_rate> const& rates) {
    std::vector<std::vector<std::string>> rows{
        {"platform", "ranks", "simulated GB/s", "published GB/s", "error", "published where"}};
    for (auto const& each : rates)
        rows.push_back({each.published.platform, std::to_string(each.published.ranks), fmt::format("{:.1f}", each.simulated_gbs),
                        fmt::format("{:.0f}", each.published.busbw_gbs), fmt::format("{:+.0f}%", 100 * each.error()),
                        each.published.source});
    return fmt::format(
        "SIMULATED bus bandwidth of one allreduce of 256 MiB by muster's mpi and hierarchical backends; the published ones are "
        "NCCL's.\n{}",
        align_columns(rows));
}

nlohmann::json to_json(std::vector<validated_rate> const& rates) {
    nlohmann::json out{{"schema", "muster.simulation-validation/1"}, {"simulated", true}, {"rates", nlohmann::json::array()}};
    for (auto const& each : rates)
        out["rates"].push_back({{"platform", each.published.platform},
                                {"ranks", each.published.ranks},
                                {"simulated", true},
                                {"simulated_busbw_gbs", each.simulated_gbs},
                                {"published_busbw_gbs", each.published.busbw_gbs},
                                {"error", each.error()},
                                {"source", each.published.source}});
    return out;
}

}  // namespace muster
