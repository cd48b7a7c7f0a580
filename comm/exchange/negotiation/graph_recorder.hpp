// When the order of a program's allreduces has become known.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "comm/exchange/negotiation/coordinator.hpp"

namespace muster {

/// A plain value. Fed with what the ranks agree on, which is the same on all, it comes to the same conclusion on all at the same
/// time. A step ends when a tensor comes that the step has had. Two steps in a row of the same agreements make the graph.
class graph_recorder {
  public:
    using unit = std::shared_ptr<agreement const>;

    /// Takes in what has been agreed on in one round; others than allreduces are passed over. True once the graph is known, from
    /// when on nothing may be given any more.
    bool note(std::span<unit const> agreed);

    /// The graph, in the order of its last whole step.
    std::vector<unit> const& graph() const noexcept { return before_; }

    /// What of the step that had begun when the graph became known had been agreed on already.
    std::vector<unit> const& begun() const noexcept { return step_; }

  private:
    bool ends_like_the_one_before() const;

    std::vector<unit> before_, step_;
    std::unordered_map<std::string, unit> in_before_, in_step_;
};

}  // namespace muster
