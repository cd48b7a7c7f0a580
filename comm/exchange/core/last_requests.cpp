#include "comm/exchange/core/last_requests.hpp"

#include <fmt/format.h>

#include <string>

#include "comm/backend/comm_error.hpp"

namespace muster::detail {

namespace {

std::string describe_on(pending_request const& one, identity const& who) {
    return fmt::format("{} (rank {} of {} on {})", describe(one.what->kind, one.what->name), who.rank, who.world_size, who.host);
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

}  // namespace muster::detail
