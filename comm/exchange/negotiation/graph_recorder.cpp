#include "comm/exchange/negotiation/graph_recorder.hpp"

#include <algorithm>
#include <utility>

namespace muster {

bool graph_recorder::note(std::span<unit const> agreed) {
    bool known = false;
    for (auto const& each : agreed) {
        if (each->what.kind != exchange_kind::allreduce || each->what.how == exchange_reduction::adasum || !each->whole) continue;
        if (in_step_.contains(each->what.name)) {
            // A round holds a name once, so a graph that is known stays so for the rest of the round.
            known = known || ends_like_the_one_before();
            before_ = std::exchange(step_, {});
            in_before_ = std::exchange(in_step_, {});
        }
        step_.push_back(each);
        in_step_.emplace(each->what.name, each);
    }
    return known;
}

bool graph_recorder::ends_like_the_one_before() const {
    if (step_.size() != before_.size()) return false;
    return std::all_of(step_.begin(), step_.end(), [&](unit const& each) {
        auto const found = in_before_.find(each->what.name);
        return found != in_before_.end() && is_repetition(found->second->what, each->what);
    });
}

}  // namespace muster
