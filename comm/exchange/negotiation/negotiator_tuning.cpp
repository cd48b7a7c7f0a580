// How a channel tries other settings.
#include "base/log.hpp"
#include "comm/exchange/negotiation/negotiator.hpp"

namespace muster::detail {

namespace {

using namespace std::chrono_literals;

// A sample is meant to hold some steps of a training, or a good part of one.
constexpr std::size_t rounds_of_a_sample = 20;
constexpr auto time_of_a_sample = 50ms;

}  // namespace

void channel::tune() {
    tuner_.emplace(tuning{fusion_bytes_, duration(cycle_time_)});
}

/// Sends new settings like any request: all ranks change over at the same point of the order.
void channel::take_tuning_sample(exchange_clock::time_point now) {
    if (tuning_asked_ || tuner_->finished()) return;
    if (window_rounds_++ == 0) {
        window_began_ = now;
        window_bytes_ = 0;
        return;
    }
    for (auto const& each : ready_)
        for (auto const& spec : each->what.tensors)
            window_bytes_ += static_cast<std::size_t>(spec.shape.elements()) * size_of(spec.type);
    if (window_rounds_ < rounds_of_a_sample || now - window_began_ < time_of_a_sample) return;
    double const speed = static_cast<double>(window_bytes_) / duration(now - window_began_).count();
    window_rounds_ = 0;
    bool const changed = tuner_->sample(speed);
    tuning const& next = tuner_->current();
    if (tuner_->finished())
        spdlog::info("exchange: tuned to fusion of {} and a cycle of {}", format_bytes(next.fusion_bytes),
                     format_duration(next.cycle_time));
    if (!changed) return;
    auto what = std::make_shared<request>();
    what->kind = exchange_kind::tune;
    what->name = std::string(1, internal_name) + "tune";
    what->numbers = {static_cast<std::int64_t>(next.fusion_bytes),
                     std::chrono::duration_cast<std::chrono::nanoseconds>(next.cycle_time).count()};
    auto ask = pending_ptr::make();
    ask->what = std::move(what);
    ask->set = set_;
    ask->submitted = now;
    tuning_asked_ = true;
    submit(std::move(ask));
}

}  // namespace muster::detail
