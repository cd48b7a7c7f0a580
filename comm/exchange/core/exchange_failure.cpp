// Failure of an exchange: ends its requests and writes the flight recorder's file.
#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/exchange/core/exchange_core.hpp"

namespace muster::detail {

void exchange_core::throw_failure() const {
    throw comm_error(errc::peer_failed, fmt::format("the exchange failed before: {}", failure_->message), failure_->culprits);
}

void exchange_core::fail(std::exception_ptr const& problem) {
    failure_text text;
    try {
        std::rethrow_exception(problem);
    } catch (comm_error const& known) {
        text = {known.code(), known.what(), known.culprits()};
    } catch (error const& known) {
        text = {known.code(), known.what(), {}};
    } catch (std::exception const& foreign) {
        text = {errc::internal, foreign.what(), {}};
    }
    {
        std::scoped_lock const lock(guard_);
        if (!failure_) failure_ = text;
    }
    if (!abandon_) spdlog::error("exchange: {}", text.message);
    dump_flight(text.message, text.culprits);
}

/// `left` is what was under way; what is in the queue joins it.
void exchange_core::fail_what_is_left(std::vector<pending_ptr> left) {
    failure_text why;
    {
        std::scoped_lock const lock(guard_);
        left.insert(left.end(), queue_.begin(), queue_.end());
        queue_.clear();
        why = *failure_;
    }
    for (auto const& each : left) {
        counters::add(count.errors);
        std::string text = why.message;
        if (text.find('"' + each->what->name + '"') == std::string::npos)
            text = fmt::format("{} (rank {} of {} on {}) did not finish: {}", describe(each->what->kind, each->what->name),
                               who_.rank, who_.world_size, who_.host, text);
        set_failed(*each, why.code, text, why.culprits);
    }
    finish(left);
}

void exchange_core::dump_flight(std::string const& reason, std::vector<int> const& culprits) {
    if (options_.flight_folder.empty()) return;
    try {
        flight_dump all = dump();
        all.reason = reason;
        all.culprits = culprits;
        spdlog::error("exchange: the last operations are in {}", write_flight_dump(all, options_.flight_folder));
    } catch (std::exception const& trouble) {
        spdlog::error("exchange: the last operations could not be written: {}", trouble.what());
    }
}

flight_dump exchange_core::dump() const {
    flight_dump all;
    all.rank = who_.rank;
    all.ranks = who_.world_size;
    all.host = who_.host;
    all.records = recorder.records();
    std::scoped_lock const lock(guard_);
    names_.for_in_flight([&](pending_request const& each) {
        std::string_view const name = recorded_name(*each.what);
        if (all.waiting.size() < 100 && !name.empty() && name.front() != internal_name) all.waiting.emplace_back(name);
    });
    std::sort(all.waiting.begin(), all.waiting.end());
    if (failure_) {
        all.reason = failure_->message;
        all.culprits = failure_->culprits;
    }
    return all;
}

}  // namespace muster::detail
