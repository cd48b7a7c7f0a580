#include "comm/exchange/core/begin_and_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "comm/backend/comm_error.hpp"
#include "comm/backend/process_set.hpp"
#include "comm/backend/speaker.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

namespace {

std::string describe_on(pending_request const& one, identity const& who) {
    return fmt::format("{} ({})", describe(one.what->kind, one.what->name), speaker(who));
}

}  // namespace

failure_text failure_of(std::exception_ptr const& problem) {
    try {
        std::rethrow_exception(problem);
    } catch (comm_error const& known) {
        return {known.code(), known.what(), known.culprits()};
    } catch (error const& known) {
        return {known.code(), known.what(), {}};
    } catch (std::exception const& foreign) {
        return {errc::internal, foreign.what(), {}};
    }
}

void end_left(std::span<pending_ptr const> left, identity const& who, exchange_context& shared) {
    for (auto const& each : left) {
        if (each->what->kind == exchange_kind::leave)
            complete(*each, shared.count);
        else
            set_failed(*each, errc::usage, describe_on(*each, who) + ": the exchange ended before it", {});
    }
    shared.finished.finish(left);
}

void fail_left(std::span<pending_ptr const> left, failure_text const& why, identity const& who, exchange_context& shared) {
    for (auto const& each : left) {
        counters::add(shared.count.errors);
        bool const is_named = why.message.find('"' + each->what->name + '"') != std::string::npos;
        set_failed(*each, why.code, is_named ? why.message : describe_on(*each, who) + " did not finish: " + why.message,
                   why.culprits);
    }
    shared.finished.finish(left);
}

namespace {

tensor_view bytes_view(void* data, std::size_t bytes) {
    return {data, bytes, dtype::u8, memory_kind::host};
}

}  // namespace

/// Every rank sees every rank's options, so either all of them throw or none.
void check_options(communicator& ranks, exchange_options const& options) {
    std::array<std::int64_t, 2> const mine{static_cast<std::int64_t>(options.fusion_bytes),
                                           static_cast<std::int64_t>(options.cache_capacity)};
    static constexpr std::array names{"fusion_bytes", "cache_capacity"};
    std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("exchange options", input_of(std::span(mine)), view_of(std::span(all))).wait();
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t const which = i % mine.size();
        if (all[i] == all[which]) continue;
        int const rank = static_cast<int>(i / mine.size());
        throw comm_error(
            errc::usage,
            fmt::format("the option {} of the exchange is {} on rank 0 ({}) and {} on rank {} ({}); give the same everywhere",
                        names[which], all[which], ranks.host_of(0), all[i], rank, ranks.host_of(rank)),
            {rank});
    }
}

identity among_members(identity const& who, communicator const& ranks) {
    std::vector<int> all;
    std::vector<std::string> hosts;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        all.push_back(rank);
        hosts.push_back(ranks.host_of(rank));
    }
    return identity_in_set(who, all, static_cast<std::size_t>(who.rank), hosts);
}

std::vector<std::string> gather_places(communicator& ranks, std::string const& device_name) {
    constexpr std::size_t longest = 48;
    std::array<char, longest> mine{};
    std::copy_n(device_name.data(), std::min(device_name.size(), longest - 1), mine.data());
    std::vector<char> all(longest * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("devices", bytes_view(mine.data(), mine.size()), bytes_view(all.data(), all.size())).wait();
    std::vector<std::string> places;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        std::string const device = all.data() + static_cast<std::size_t>(rank) * longest;
        places.push_back(device.empty() ? ranks.host_of(rank) : ranks.host_of(rank) + ", " + device);
    }
    return places;
}

clock_offset measure_clocks(communicator& ranks) {
    constexpr int readings = 8;
    auto const size = static_cast<std::size_t>(ranks.size());
    std::vector<std::array<std::int64_t, 2>> mine(readings);
    std::int64_t ignored = 0;
    for (auto& each : mine) {
        each[0] = trace_time(exchange_clock::now());
        ranks.allreduce("clocks", view_of(std::span(&ignored, 1)), reduction::max).wait();
        each[1] = trace_time(exchange_clock::now());
    }
    std::size_t const bytes = readings * sizeof mine[0];
    std::vector<std::array<std::int64_t, 2>> all(readings * size);
    ranks.allgather("clocks", bytes_view(mine.data(), bytes), bytes_view(all.data(), bytes * size)).wait();
    if (ranks.rank() == 0) return {};
    std::vector<clock_reading> pairs;
    for (std::size_t i = 0; i < readings; ++i) pairs.push_back({all[i][0], all[i][1], mine[i][0], mine[i][1]});
    auto const offset = estimate_offset(pairs);
    // Ranks on one host read the same clock.
    if (ranks.host_of(0) == ranks.host_of(ranks.rank()) && std::abs(offset.offset_us) <= offset.error_us) return {};
    return offset;
}

}  // namespace muster::detail
