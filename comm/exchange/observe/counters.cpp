#include "comm/exchange/observe/counters.hpp"

#include <fmt/format.h>

#include <iterator>

namespace muster {

namespace {

struct row {
    char const* name;
    char const* what;
    std::uint64_t counter_values::*value;
    counters::number counters::*source;
};

constexpr row rows[]{
    {"tensors", "Tensors reduced by allreduce", &counter_values::tensors, &counters::tensors},
    {"fused_tensors", "Tensors reduced together with others", &counter_values::fused_tensors, &counters::fused_tensors},
    {"batches", "Collectives started for data", &counter_values::batches, &counters::batches},
    {"zero_copy_batches", "Allreduces of tensors where they lie", &counter_values::zero_copy_batches,
     &counters::zero_copy_batches},
    {"rounds", "Rounds of negotiation", &counter_values::rounds, &counters::rounds},
    {"full_rounds", "Rounds with announcements beyond cached ones", &counter_values::full_rounds, &counters::full_rounds},
    {"agreeing_rounds", "Rounds in which something was agreed on", &counter_values::agreeing_rounds, &counters::agreeing_rounds},
    {"agreeing_ns", "Nanoseconds that these rounds took", &counter_values::agreeing_ns, &counters::agreeing_ns},
    {"cache_hits", "Requests found in the response cache", &counter_values::cache_hits, &counters::cache_hits},
    {"cache_misses", "Requests not found in the response cache", &counter_values::cache_misses, &counters::cache_misses},
    {"errors", "Requests that ended with an error", &counter_values::errors, &counters::errors},
    {"stalls", "Warnings of the stall inspector", &counter_values::stalls, &counters::stalls},
    {"wait_ns", "Nanoseconds that callers were blocked", &counter_values::wait_ns, &counters::wait_ns},
    {"negotiation_ns", "Nanoseconds between submission and agreement", &counter_values::negotiation_ns,
     &counters::negotiation_ns},
    {"timeline_dropped", "Events that the timeline could not take in", &counter_values::timeline_dropped,
     &counters::timeline_dropped},
};

}  // namespace

counter_values counters::values() const noexcept {
    counter_values copy;
    for (std::size_t kind = 0; kind < operations.size(); ++kind) {
        copy.operations[kind] = operations[kind].load(std::memory_order_relaxed);
        copy.bytes[kind] = bytes[kind].load(std::memory_order_relaxed);
    }
    for (auto const& each : rows) copy.*each.value = (this->*each.source).load(std::memory_order_relaxed);
    return copy;
}

double fused_ratio(counter_values const& values) noexcept {
    return values.tensors == 0 ? 0.0 : static_cast<double>(values.fused_tensors) / static_cast<double>(values.tensors);
}

std::string to_json(counter_values const& values, int rank) {
    auto const by_kind = [](std::array<std::uint64_t, exchange_kinds> const& numbers) {
        std::string text;
        for (std::size_t kind = 0; kind < numbers.size(); ++kind)
            fmt::format_to(std::back_inserter(text), "{}\"{}\": {}", kind == 0 ? "" : ", ",
                           to_string(static_cast<exchange_kind>(kind)), numbers[kind]);
        return text;
    };
    std::string text = fmt::format("{{\"rank\": {}, \"operations\": {{{}}}, \"bytes\": {{{}}}", rank, by_kind(values.operations),
                                   by_kind(values.bytes));
    for (auto const& each : rows) fmt::format_to(std::back_inserter(text), ", \"{}\": {}", each.name, values.*each.value);
    return text + fmt::format(", \"fused_ratio\": {:.6f}}}", fused_ratio(values));
}

std::string to_prometheus(counter_values const& values, int rank) {
    std::string text;
    auto const head = [&](std::string_view name, std::string_view what) {
        fmt::format_to(std::back_inserter(text), "# HELP muster_comm_{}_total {}\n# TYPE muster_comm_{}_total counter\n", name,
                       what, name);
    };
    auto const by_kind = [&](std::string_view name, std::string_view what,
                             std::array<std::uint64_t, exchange_kinds> const& numbers) {
        head(name, what);
        for (std::size_t kind = 0; kind < numbers.size(); ++kind)
            fmt::format_to(std::back_inserter(text), "muster_comm_{}_total{{rank=\"{}\",kind=\"{}\"}} {}\n", name, rank,
                           to_string(static_cast<exchange_kind>(kind)), numbers[kind]);
    };
    by_kind("operations", "Finished operations", values.operations);
    by_kind("bytes", "Bytes of inputs", values.bytes);
    for (auto const& each : rows) {
        head(each.name, each.what);
        fmt::format_to(std::back_inserter(text), "muster_comm_{}_total{{rank=\"{}\"}} {}\n", each.name, rank, values.*each.value);
    }
    return text;
}

}  // namespace muster
