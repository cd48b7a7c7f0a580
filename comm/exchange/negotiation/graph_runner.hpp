// The tensors of a static graph at work: no negotiation.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/batch/batch_runner.hpp"
#include "comm/exchange/negotiation/graph_recorder.hpp"
#include "comm/exchange/negotiation/negotiator.hpp"

namespace muster::detail {

/// Every rank runs the same batches in the same order, each as soon as this rank has all its tensors, on a communicator of its
/// own, so that what is negotiated meanwhile goes on beside it. The exchange's thread only.
class static_channel {
  public:
    /// `begun`: units of the graph that the first step does without.
    static_channel(communicator ranks, context& shared, std::vector<std::string> places, std::vector<graph_recorder::unit> graph,
                   std::vector<graph_recorder::unit> const& begun);

    bool covers(pending const& one) const {
        return one.set == 0 && (one.graph_place != pending::nowhere || by_name_.contains(one.what->name));
    }
    /// A request of the graph. One that does not repeat what the graph holds fails at once.
    void submit(pending_ptr one);
    step_result step(exchange_clock::time_point now);
    void give_back(std::vector<pending_ptr>& into) const;
    void leak() noexcept { runner_.leak(); }
    /// See batch_runner.
    void use_lane(std::unique_ptr<device_lane> lane) { runner_.use_lane(std::move(lane)); }
    void refuse_device(std::string why) { runner_.refuse_device(std::move(why)); }

  private:
    static constexpr std::size_t nowhere = ~std::size_t{0};

    bool takes(pending& one);
    bool is_complete() const;
    void begin_step();
    void check(exchange_clock::time_point now);
    void check_dead(operation const& what, exchange_clock::time_point began, std::string const& label,
                    exchange_clock::time_point now);

    communicator ranks_;
    context& shared_;
    std::vector<std::string> places_;
    std::vector<graph_recorder::unit> graph_;
    std::unordered_map<std::string, std::size_t> by_name_;
    std::vector<shared_request> taken_;  // of each unit of the graph: the request that was found to repeat it last
    std::vector<std::size_t> place_;     // of each unit of the graph, in the runner; or nowhere
    std::vector<pending_ptr> later_;     // given for the next step
    batch_runner runner_;
    death_watch watch_;
    exchange_clock::time_point last_check_{};
};

}  // namespace muster::detail
