// The input of tests of reductions, and the result that they must have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "comm/tensor/tensor.hpp"
#include "pmix/identity.hpp"

namespace muster::test {

template <typename T>
T as(double number) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
        return T(static_cast<float>(number));
    else
        return static_cast<T>(number);
}

/// Small whole numbers: sums over six ranks, and so what is rounded between the steps, are exact in every type.
inline double value(std::size_t i, int rank, reduction how) {
    auto const spread = static_cast<double>((i * 7 + static_cast<std::size_t>(rank) * 5) % 13);
    return how == reduction::product ? 1 + static_cast<double>((i + static_cast<std::size_t>(rank)) % 2) : spread + 1;
}

inline double oracle(std::size_t i, int size, reduction how) {
    double result = value(i, 0, how);
    for (int rank = 1; rank < size; ++rank) {
        double const next = value(i, rank, how);
        switch (how) {
            case reduction::sum:
            case reduction::average: result += next; break;
            case reduction::min: result = std::min(result, next); break;
            case reduction::max: result = std::max(result, next); break;
            case reduction::product: result *= next; break;
            case reduction::adasum: break;
        }
    }
    return how == reduction::average ? result / size : result;
}

/// This rank's identity as if there were `per_node` ranks on each node; dealt out in turns if `round_robin`.
inline identity on_pretended_nodes(identity who, int per_node, bool round_robin = false) {
    who.node_count = (who.world_size + per_node - 1) / per_node;
    who.node_rank = round_robin ? who.rank % who.node_count : who.rank / per_node;
    who.local_rank = round_robin ? who.rank / who.node_count : who.rank % per_node;
    who.local_size = per_node;
    return who;
}

}  // namespace muster::test
