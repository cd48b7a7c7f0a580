#include "comm/exchange/internal/batch_runner.hpp"

#include <algorithm>

namespace muster::detail {

namespace {

constexpr std::uint64_t not_recorded = ~std::uint64_t{0};

}  // namespace

void complete(pending& unit, counters& count) {
    counters::add(count.operations[static_cast<std::size_t>(unit.what.kind)]);
    bool const spoiled = !unit.fault.empty();
    if (spoiled) counters::add(count.errors);
    unit.state.store(spoiled ? pending::phase::failed : pending::phase::done);
}

void batch_runner::load(std::vector<std::shared_ptr<agreement const>> agreed, std::vector<pending_ptr> units) {
    agreed_ = std::move(agreed);
    // In the steady state the same agreements come together again and again.
    if (planned_bytes_ != fusion_bytes_ || planned_for_ != agreed_) {
        batches_ = plan_batches(agreed_, fusion_bytes_);
        planned_for_ = agreed_;
        planned_bytes_ = fusion_bytes_;
    }
    rewind();
    units_ = std::move(units);
}

void batch_runner::rewind() {
    units_.assign(agreed_.size(), nullptr);
    tensors_left_.resize(agreed_.size());
    for (std::size_t i = 0; i < agreed_.size(); ++i) tensors_left_[i] = std::max<std::size_t>(agreed_[i]->what.tensors.size(), 1);
    flights_.assign(agreed_.size(), not_recorded);
    next_batch_ = 0;
}

bool batch_runner::advance() {
    if (!run_) start();
    if (!run_->advance()) return false;
    end();
    run_.reset();
    ++next_batch_;
    return true;
}

void batch_runner::start() {
    fused_batch const& batch = batches_[next_batch_];
    began_ = exchange_clock::now();
    for (auto const& item : batch.items) {
        if (flights_[item.unit] != not_recorded) continue;
        request const& what = agreed_[item.unit]->what;
        pending* const unit = units_[item.unit].get();
        std::uint64_t bytes = 0;
        if (unit)
            for (auto const& io : unit->tensors) bytes += io.in.bytes();
        flights_[item.unit] = shared_.recorder.begin(set_, sequence_++, what.kind, what.name, bytes);
        counters::add(shared_.count.bytes[static_cast<std::size_t>(what.kind)], bytes);
        if (unit && shared_.trace.running())
            shared_.trace.add({trace_kind::queue, shared_.trace.intern(what.name), shared_.trace.intern(to_string(what.kind)),
                               ++trace_id_, trace_time(unit->announced), trace_time(began_), bytes});
    }
    counters::add(shared_.count.batches);
    if (batch.kind == exchange_kind::allreduce) {
        counters::add(shared_.count.tensors, batch.items.size());
        if (batch.items.size() > 1) counters::add(shared_.count.fused_tensors, batch.items.size());
    }
    run_.emplace(ranks_, shared_, first_, second_, batch, agreed_, units_);
    run_->start();
}

void batch_runner::end() {
    std::vector<pending_ptr> ended;
    for (auto const& item : batches_[next_batch_].items) {
        if (--tensors_left_[item.unit] != 0) continue;
        shared_.recorder.end(flights_[item.unit]);
        if (auto& unit = units_[item.unit]) {
            complete(*unit, shared_.count);
            ended.push_back(std::move(unit));
        }
    }
    if (!ended.empty()) shared_.finished.finish(ended);
}

void batch_runner::leak() noexcept {
    if (run_) {
        try {
            run_->under_way().wait(duration{1e-9});  // gives it up: its destructor would wait for those who do not come
        } catch (...) {
        }
        run_->leak();
    }
    first_.leak();
    second_.leak();
}

std::vector<late_rank> death_watch::look(operation const& what, exchange_clock::time_point began,
                                         exchange_clock::time_point now) {
    using namespace std::chrono_literals;
    bool const suspected = dead_since_ > began;
    // What the dead have sent may still be on its way.
    if (now - std::max(began, last_look_) < (suspected ? 100ms : 200ms)) return {};
    last_look_ = now;
    auto late = what.late_ranks();
    std::erase_if(late, [](late_rank const& each) { return !each.dead; });
    if (late.empty() || suspected) return late;
    dead_since_ = now;
    return {};
}

}  // namespace muster::detail
