// The inside of a prepared group: holds its request and where its tensors lie.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/exchange/request/pending_request.hpp"

namespace muster::detail {

struct prepared {
    shared_request what;
    int set = 0;
    std::shared_ptr<std::vector<tensor_io> const> tensors;
    std::size_t bytes = 0;
    bool on_device = false;  ///< some of the tensors
};

}  // namespace muster::detail
