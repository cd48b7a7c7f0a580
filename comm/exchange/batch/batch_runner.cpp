#include "comm/exchange/batch/batch_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <unordered_map>

namespace muster::detail {

namespace {

constexpr std::uint64_t not_recorded = ~std::uint64_t{0};

std::vector<unit_share> shares_of(fused_batch const& batch) {
    std::unordered_map<std::size_t, std::size_t> known;
    std::vector<unit_share> all;
    for (auto const& item : batch.items) {
        if (all.empty() || all.back().unit != item.unit) {
            auto const [found, is_new] = known.try_emplace(item.unit, all.size());
            if (is_new)
                all.push_back({item.unit, 0});
            else if (found->second + 1 != all.size()) {
                ++all[found->second].tensors;
                continue;
            }
        }
        ++all.back().tensors;
    }
    return all;
}

}  // namespace

batch_plan& batch_runner::find_plan() {
    batch_plan* oldest = nullptr;
    for (auto const& each : plans_) {
        if (each->of == agreed_) {
            each->used = loads_;
            return *each;
        }
        if (oldest == nullptr || each->used < oldest->used) oldest = each.get();
    }
    if (plans_.size() < most_plans) oldest = plans_.emplace_back(std::make_unique<batch_plan>()).get();
    oldest->of = agreed_;
    oldest->used = loads_;
    oldest->batches = plan_batches(agreed_, shared_.options.fusion_bytes);
    oldest->units.clear();
    for (auto const& batch : oldest->batches) oldest->units.push_back(shares_of(batch));
    oldest->layouts.resize(oldest->batches.size());
    oldest->laid_out.assign(oldest->batches.size(), nullptr);
    if (has_handed()) retired_.push_back(std::move(oldest->movers));
    oldest->movers.clear();
    oldest->on_device.clear();
    for (auto const& batch : oldest->batches) {
        if (batch.where != memory_kind::device) continue;
        oldest->movers.resize(oldest->batches.size());
        oldest->on_device.resize(agreed_.size());
        for (auto const& item : batch.items) ++oldest->on_device[item.unit];
    }
    return *oldest;
}

void batch_runner::load(std::vector<std::shared_ptr<agreement const>> agreed, std::vector<pending_ptr> units) {
    agreed_ = std::move(agreed);
    units_ = std::move(units);  // first: if the rest fails, they fail too
    ++loads_;
    plan_ = &find_plan();
    tensors_left_.resize(agreed_.size());
    for (std::size_t i = 0; i < agreed_.size(); ++i) tensors_left_[i] = std::max<std::size_t>(agreed_[i]->what.tensors.size(), 1);
    records_.assign(agreed_.size(), not_recorded);
    to_hand_ = plan_->on_device;
    next_batch_ = 0;
}

bool batch_runner::advance() {
    if (plan_->batches[next_batch_].where == memory_kind::device) {
        if (!device_) {
            if (!lane_ && no_lane_.empty()) return false;
            if (!start_on_device()) return true;
        }
        if (!is_on_lane_) {
            if (has_handed() && !device_->repeats()) return false;
            device_->start();
            is_on_lane_ = true;
        }
        if (!device_->hand_over()) return false;
        note_handed();
        return true;
    }
    if (!host_) start();
    if (!host_->advance()) return false;
    host_.reset();
    end_next();
    return true;
}

bool batch_runner::end_finished() {
    bool ended = false;
    while (!handed_.empty() && handed_.front().done(*lane_)) {
        handed_batch finished = std::move(handed_.front());
        handed_.pop_front();
        if (shared_.trace.running())
            shared_.trace.add({trace_kind::collective, shared_.trace.intern(finished.label),
                               shared_.trace.intern(to_string(finished.kind)), 0, trace_time(finished.began),
                               trace_time(exchange_clock::now()), finished.bytes});
        end(finished.ends);
        ended = true;
    }
    if (handed_.empty()) retired_.clear();
    return ended;
}

/// Returns the batch's layout, which stays as it was if a prepared group repeats.
batch_layout& batch_runner::layout_of_next() {
    fused_batch const& batch = plan_->batches[next_batch_];
    batch_layout& layout = plan_->layouts[next_batch_];
    if (batch.kind != exchange_kind::allreduce) return layout;
    auto& laid_out = plan_->laid_out[next_batch_];
    auto const& units = plan_->units[next_batch_];
    pending_request const* const only = units.size() == 1 ? units_[units.front().unit].get() : nullptr;
    if (only != nullptr && only->many && only->many == laid_out && !batch.error_feedback) return layout;
    lay_out(batch, agreed_, units_, batch.error_feedback, layout);
    laid_out = only != nullptr ? only->many : nullptr;
    return layout;
}

void batch_runner::start() {
    begin_records();
    host_.emplace(batch_parts{set_, ranks_, shared_, plan_->batches[next_batch_], agreed_, units_}, layout_of_next(), first_,
                  second_);
    host_->start();
}

/// Returns false if this world cannot work on device memory: the requests have then ended, with the reason, on all ranks.
bool batch_runner::start_on_device() {
    begin_records();
    if (!lane_) {
        for (auto const& [index, tensors] : plan_->units[next_batch_]) {
            auto const& unit = units_[index];
            if (!unit) continue;
            unit->has_extras = true;
            unit->code = errc::unavailable;
            unit->fault = fmt::format("{}: {}", describe(unit->what->kind, unit->what->name), no_lane_);
        }
        end_next();
        return false;
    }
    device_.emplace(batch_parts{set_, lane_->ranks, shared_, plan_->batches[next_batch_], agreed_, units_}, *lane_, ranks_,
                    plan_->movers[next_batch_]);
    return true;
}

/// Lets streams wait, from now on, for the requests that the device knows as a whole.
void batch_runner::note_handed() {
    handed_batch handed = std::move(*device_).take_handed();
    device_.reset();
    is_on_lane_ = false;
    std::vector<pending_ptr> known;
    for (auto const& [index, tensors] : plan_->units[next_batch_]) {
        auto const& unit = units_[index];
        to_hand_[index] -= tensors;
        if (!unit || to_hand_[index] != 0) continue;
        unit->gpu->finished = handed.finished;
        unit->handed.store(true, std::memory_order_release);
        known.push_back(unit);
    }
    take_ended(handed.ends);
    handed_.push_back(std::move(handed));
    ++next_batch_;
    if (!known.empty()) shared_.finished.finish(known);
}

void batch_runner::begin_records() {
    fused_batch const& batch = plan_->batches[next_batch_];
    began_ = exchange_clock::now();
    bool const traced = shared_.trace.running();
    std::uint64_t bytes_of_batch = 0;
    {
        flight_recorder::session records(shared_.recorder);
        for (auto const& [index, tensors] : plan_->units[next_batch_]) {
            if (records_[index] != not_recorded) continue;
            exchange_request const& what = agreed_[index]->what;
            pending_request const* const unit = units_[index].get();
            std::uint64_t const bytes = unit != nullptr ? unit->bytes : 0;
            records_[index] = records.begin(set_, sequence_++, what.kind, recorded_name(what), bytes);
            bytes_of_batch += bytes;
            if (unit != nullptr && traced)
                shared_.trace.add({trace_kind::queue, shared_.trace.intern(recorded_name(what)),
                                   shared_.trace.intern(to_string(what.kind)), ++trace_id_, trace_time(unit->announced),
                                   trace_time(began_), bytes});
        }
    }
    counters::add(shared_.count.bytes[static_cast<std::size_t>(batch.kind)], bytes_of_batch);
    counters::add(shared_.count.batches);
    if (batch.kind == exchange_kind::allreduce) {
        counters::add(shared_.count.tensors, batch.items.size());
        if (batch.items.size() > 1) counters::add(shared_.count.fused_tensors, batch.items.size());
    }
}

/// Takes the requests that end with the next batch.
void batch_runner::take_ended(std::vector<ending_unit>& into) {
    into.clear();
    for (auto const& [index, tensors] : plan_->units[next_batch_]) {
        tensors_left_[index] -= tensors;
        if (tensors_left_[index] == 0) into.push_back({std::move(units_[index]), records_[index]});
    }
}

/// Ends the next batch. Requests that the device works on too end with the handed batches, which end in order.
void batch_runner::end_next() {
    take_ended(ending_);
    ++next_batch_;
    if (has_handed()) {
        auto const on_device = [](ending_unit const& each) {
            return each.what && each.what->handed.load(std::memory_order_relaxed);
        };
        auto const first = std::stable_partition(ending_.begin(), ending_.end(), std::not_fn(on_device));
        std::move(first, ending_.end(), std::back_inserter(handed_.back().ends));
        ending_.erase(first, ending_.end());
    }
    end(ending_);
}

void batch_runner::end(std::span<ending_unit> all) {
    ended_.clear();
    {
        flight_recorder::session records(shared_.recorder);
        for (auto& each : all) {
            records.end(each.record);
            if (each.what) ended_.push_back(std::move(each.what));
        }
    }
    for (auto const& each : ended_) {
        if (each->gpu) shared_.gpu.take_back(std::move(each->gpu->given));
        complete(*each, shared_.count);
    }
    if (!ended_.empty()) shared_.finished.finish(ended_);
    ended_.clear();
}

void batch_runner::leak() noexcept {
    if (host_) {
        try {
            host_->under_way().wait(duration{1e-9});  // gives it up: its destructor would wait for ranks that have failed
        } catch (...) {
        }
        host_->leak();
    }
    if (device_) device_->leak();
    for (auto& each : handed_) each.leak();
    first_.leak();
    second_.leak();
    if (!lane_) return;
    // Kernels still on the stream read the tables of their movers, and write to the lane's memory.
    static_cast<void>(new (std::nothrow) std::vector<std::unique_ptr<batch_plan>>(std::move(plans_)));
    static_cast<void>(new (std::nothrow) std::vector<std::vector<device_movers>>(std::move(retired_)));
    static_cast<void>(new (std::nothrow) std::unique_ptr<device_lane>(std::move(lane_)));
}

}  // namespace muster::detail
