// Requests and agreements that tests of the exchange's pure parts are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "comm/exchange/negotiation/coordinator.hpp"

namespace muster::test {

inline request tensor(std::string name, std::int64_t count = 4, exchange_kind kind = exchange_kind::allreduce) {
    request what;
    what.name = std::move(name);
    what.kind = kind;
    what.tensors = {{"", dtype::f32, memory_kind::host, flat_shape(static_cast<std::size_t>(count))}};
    return what;
}

inline request bare(exchange_kind kind, std::string name) {
    request what;
    what.kind = kind;
    what.name = std::move(name);
    return what;
}

inline std::shared_ptr<agreement const> agreed(request what) {
    auto one = std::make_shared<agreement>();
    one->what = std::move(what);
    return one;
}

inline std::shared_ptr<request const> shared(request what) {
    return std::make_shared<request const>(std::move(what));
}

}  // namespace muster::test
