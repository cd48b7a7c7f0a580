// Requests and agreements that tests of the exchange's pure parts are made of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "comm/exchange/request/exchange_request.hpp"

namespace muster::test {

inline exchange_request tensor(std::string name, std::int64_t count = 4, exchange_kind kind = exchange_kind::allreduce) {
    exchange_request what;
    what.name = std::move(name);
    what.kind = kind;
    what.tensors = {{"", dtype::f32, memory_kind::host, flat_shape(static_cast<std::size_t>(count))}};
    return what;
}

inline exchange_request bare(exchange_kind kind, std::string name) {
    exchange_request what;
    what.kind = kind;
    what.name = std::move(name);
    return what;
}

inline std::shared_ptr<agreement const> agreed(exchange_request what) {
    auto one = std::make_shared<agreement>();
    one->what = std::move(what);
    return one;
}

inline std::shared_ptr<exchange_request const> shared(exchange_request what) {
    return std::make_shared<exchange_request const>(std::move(what));
}

}  // namespace muster::test
