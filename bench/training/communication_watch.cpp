#include "bench/training/communication_watch.hpp"

#include <span>

namespace muster {

namespace {

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void communication_watch::begin() {
    under_way_ = false;
    hidden_ = starting_ = 0;
    waits_.clear();
}

void communication_watch::ready(std::size_t index) {
    auto const now = clock::now();
    if (under_way_) hidden_ += seconds_between(last_, now);
    reducer_.ready(index);
    under_way_ = reducer_.finished_buckets() < reducer_.started_buckets();
    last_ = clock::now();
    starting_ += seconds_between(now, last_);
}

void communication_watch::finish() {
    auto const now = clock::now();
    if (under_way_) hidden_ += seconds_between(last_, now);
    under_way_ = false;
    reducer_.finish();
    waits_.push_back(static_cast<float>(seconds_between(now, clock::now())));
}

communication_split communication_watch::end(communicator& ranks) {
    auto least = waits_;
    if (!least.empty()) ranks.allreduce("waits of the steps", view_of(std::span(least)), reduction::min).wait();
    communication_split out;
    out.hidden_s = hidden_;
    out.exposed_s = starting_;
    for (std::size_t i = 0; i < waits_.size(); ++i) {
        out.finish_s += double{waits_[i]};
        out.exposed_s += double{least[i]};
        out.waiting_s += double{waits_[i]} - double{least[i]};
    }
    return out;
}

}  // namespace muster
