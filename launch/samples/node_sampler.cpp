#include "launch/samples/node_sampler.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "launch/samples/gpu_reader.hpp"
#include "launch/samples/node_reader.hpp"

namespace muster {

namespace {

constexpr duration first_look{1};
constexpr double rank_rests = 100;
constexpr double gpu_rests = 2000;
constexpr duration gpu_patience{30};
constexpr std::chrono::milliseconds patience_at_end{500};

}  // namespace

struct node_sampler::eyes {
    rank_reader ranks;
    std::optional<node_reader> node;
    std::optional<gpu_reader> gpus;
    node_sample seen;  ///< at the last look
};

node_sampler::node_sampler(event_loop& loop, sampled_node what, ranks to_look_at, sink take)
    : loop_(loop),
      what_(std::move(what)),
      to_look_at_(std::move(to_look_at)),
      take_(std::move(take)),
      of_ranks_(std::make_shared<eyes>()),
      of_gpus_(std::make_shared<eyes>()),
      at_ranks_(loop, "for samples of ranks", rank_rests, [this] { take_look(*of_ranks_); }),
      at_gpus_(loop, "for samples of GPUs", gpu_rests, [this] { take_look(*of_gpus_); }) {
    if (what_.every > duration(0)) next_ = loop_.after(std::min(first_look, what_.every), [this] { look(); });
}

void node_sampler::look() {
    next_ = loop_.after(what_.every, [this] { look(); });
    if (!what_.gpus.empty()) look_at_gpus();
    if (at_ranks_.is_busy()) return;
    auto wanted = to_look_at_();
    if (wanted.empty() && !what_.itself) return;
    at_ranks_.begin([own = of_ranks_, wanted = std::move(wanted), what = what_] {
        if (what.itself && !own->node) own->node.emplace(what.interface, what.towards);
        own->seen = own->node ? own->node->read() : node_sample();
        own->seen.ranks = own->ranks.read(wanted);
    });
}

void node_sampler::look_at_gpus() {
    if (at_gpus_.busy_for() > gpu_patience && !std::exchange(silent_gpus_told_, true)) {
        node_sample part;
        for (auto const& one : what_.gpus) part.gpus.push_back({.number = gpu_number(one), .name = one.name});
        take_(part);
    }
    if (at_gpus_.is_busy()) return;
    silent_gpus_told_ = false;
    at_gpus_.begin([own = of_gpus_, gpus = what_.gpus] {
        if (!own->gpus) own->gpus.emplace(gpus);
        own->seen.gpus = own->gpus->read();
    });
}

void node_sampler::take_look(eyes const& of) {
    if (&of == of_gpus_.get() && of.seen.gpus.empty()) what_.gpus.clear();  // the driver knows none
    if (of.seen != node_sample()) take_(of.seen);
}

node_sampler::~node_sampler() {
    if (next_ != 0) loop_.cancel(next_);
    auto const end = event_loop::clock::now() + patience_at_end;
    at_ranks_.wait_until(end);
    at_gpus_.wait_until(end);
}

}  // namespace muster
