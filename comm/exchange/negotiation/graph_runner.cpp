#include "comm/exchange/negotiation/graph_runner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "comm/backend/comm_error.hpp"

namespace muster::detail {

static_channel::static_channel(communicator ranks, context& shared, std::vector<std::string> places,
                               std::vector<graph_recorder::unit> graph, std::vector<graph_recorder::unit> const& begun)
    : ranks_(std::move(ranks)),
      shared_(shared),
      places_(std::move(places)),
      graph_(std::move(graph)),
      taken_(graph_.size()),
      place_(graph_.size(), nowhere),
      later_(graph_.size()),
      runner_(0, ranks_, shared) {
    for (std::size_t i = 0; i < graph_.size(); ++i) by_name_.emplace(graph_[i]->what.name, i);
    std::vector<graph_recorder::unit> first;
    for (std::size_t i = 0; i < graph_.size(); ++i) {
        bool const done =
            std::any_of(begun.begin(), begun.end(), [&](auto const& each) { return each->what.name == graph_[i]->what.name; });
        if (done) continue;
        place_[i] = first.size();
        first.push_back(graph_[i]);
    }
    runner_.use_fusion_bytes(shared.options.fusion_bytes);
    std::vector<pending_ptr> none(first.size());
    runner_.load(std::move(first), std::move(none));
    if (runner_.ended()) begin_step();
}

void static_channel::begin_step() {
    if (runner_.agreed().size() == graph_.size()) {
        runner_.rewind();
    } else {
        runner_.load(graph_, std::vector<pending_ptr>(graph_.size()));
        for (std::size_t i = 0; i < place_.size(); ++i) place_[i] = i;
    }
    for (std::size_t i = 0; i < later_.size(); ++i)
        if (later_[i]) runner_.give(place_[i], std::move(later_[i]));
}

/// Whether it repeats what the graph holds under its name; where that is, is noted in it.
bool static_channel::takes(pending& one) {
    if (one.graph_place < taken_.size() && taken_[one.graph_place] == one.what) return true;
    std::size_t const at = by_name_.at(one.what->name);
    if (!is_repetition(graph_[at]->what, *one.what)) return false;
    one.graph_place = at;
    taken_[at] = one.what;
    return true;
}

void static_channel::submit(pending_ptr one) {
    if (!takes(*one)) {
        request const& what = *one->what;
        auto const differs = compare(graph_[by_name_.at(what.name)]->what, what);
        set_failed(
            *one, errc::usage,
            fmt::format(
                "{} (rank {} of {} on {}): the static graph holds {}, this is {}; leave static_graph off for tensors that change",
                describe(what.kind, what.name), ranks_.rank(), ranks_.size(), ranks_.who().host, differs.mine, differs.theirs),
            {});
        return shared_.finished.finish({&one, 1});
    }
    std::size_t const at = one->graph_place;
    counters::add(shared_.count.static_tensors, one->what->tensors.size());
    one->announced = one->submitted;
    if (place_[at] == nowhere || runner_.has_ended(place_[at]))
        later_[at] = std::move(one);
    else
        runner_.give(place_[at], std::move(one));
}

bool static_channel::is_complete() const {
    auto const& items = runner_.batches()[runner_.next_batch()].items;
    return std::all_of(items.begin(), items.end(), [&](fusion_item const& item) { return runner_.unit(item.unit) != nullptr; });
}

step_result static_channel::step(exchange_clock::time_point now) {
    using namespace std::chrono_literals;
    step_result result;
    result.wake = now + 100ms;  // deadlines
    if (now - last_check_ > 5ms) {
        last_check_ = now;
        check(now);
    }
    result.moved = runner_.land();
    while (runner_.has_started() || is_complete()) {
        if (!runner_.advance()) {
            result.busy = result.data = true;
            check_dead(runner_.under_way(), runner_.began(), runner_.label(), now);
            return result;
        }
        result.moved = true;
        if (runner_.ended()) begin_step();
    }
    if (!runner_.flies()) return result;
    result.busy = result.data = true;
    auto const& oldest = runner_.flights().front();
    check_dead(oldest.under_way, oldest.began, oldest.label, now);
    return result;
}

void static_channel::check_dead(operation const& what, exchange_clock::time_point began, std::string const& label,
                                exchange_clock::time_point now) {
    auto const late = watch_.look(what, began, now);
    if (late.empty()) return;
    std::vector<int> ranks;
    std::vector<std::string> names;
    for (auto const& each : late) {
        ranks.push_back(each.rank);
        names.push_back(fmt::format("rank {} ({}): {}", each.rank, places_.at(static_cast<std::size_t>(each.rank)), each.why));
    }
    throw comm_error(errc::peer_failed,
                     fmt::format("allreduce of \"{}\" (rank {} of {} on {}) cannot finish: {}. Look at what that rank wrote last",
                                 label, ranks_.rank(), ranks_.size(), ranks_.who().host, join(names, "; ")),
                     std::move(ranks));
}

void static_channel::check(exchange_clock::time_point now) {
    std::vector<pending_ptr> all;
    give_back(all);
    for (auto const& unit : all) {
        auto const deadline = unit->deadline.load(std::memory_order_relaxed);
        if (deadline == 0 || now.time_since_epoch().count() < deadline) continue;
        std::vector<int> ranks;
        std::vector<std::string> names;
        bool const flies = unit->handed.load(std::memory_order_relaxed) && runner_.flies();
        if (flies || runner_.has_started())
            for (auto const& each : (flies ? runner_.flights().front().under_way : runner_.under_way()).late_ranks()) {
                ranks.push_back(each.rank);
                names.push_back(
                    fmt::format("rank {} ({}): {}", each.rank, places_.at(static_cast<std::size_t>(each.rank)), each.why));
            }
        std::string why = "waiting for " + join(names, "; ");
        if (!flies && !runner_.has_started()) {
            for (auto const& item : runner_.batches()[runner_.next_batch()].items)
                if (runner_.unit(item.unit) == nullptr) names.push_back('"' + runner_.agreed()[item.unit]->what.name + '"');
            if (names.size() > 3) names.resize(3);
            why = "this rank itself has not submitted " + join(names, ", ") + ", which comes before it in the static graph";
        } else if (names.empty()) {
            why = "some rank is late or has failed; look at the other ranks";
        }
        throw comm_error(errc::timeout,
                         fmt::format("allreduce of \"{}\" (rank {} of {} on {}): not finished by its deadline; {}",
                                     unit->what->name, ranks_.rank(), ranks_.size(), ranks_.who().host, why),
                         std::move(ranks));
    }
}

void static_channel::give_back(std::vector<pending_ptr>& into) const {
    for (auto const& each : runner_.units())
        if (each) into.push_back(each);
    for (auto const& flight : runner_.flights())
        for (auto const& each : flight.ends)
            if (each.what) into.push_back(each.what);
    for (auto const& each : later_)
        if (each) into.push_back(each);
}

}  // namespace muster::detail
