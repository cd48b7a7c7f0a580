// The Adasum of gradients is a sum that counts only once what they have in common.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "comm/communicator.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// The Adasum of two vectors a and b is from_a * a + from_b * b.
struct adasum_weights {
    double from_a = 1;
    double from_b = 1;
    bool operator==(adasum_weights const&) const = default;
};

/// Returns 1 - a.b / (2 |a|^2) and 1 - a.b / (2 |b|^2), or 1 if the norm is 0, from the products a.b, a.a and b.b. Pure.
adasum_weights weigh(double ab, double aa, double bb) noexcept;

/// out = Adasum of the ranks' `in` (Maleki et al., arXiv 2006.02924): A(a, b) = (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b for
/// two vectors, which is a + b if they are orthogonal, a if they are equal and 0 if b = -a; for more vectors by halves:
/// A(g[0..n)) = A(A(first half), A(second half)). It is not associative, so this tree is fixed. If n is not a power of two and p
/// is the next lower one, rank r >= p is first folded into rank r - p: g[r - p] becomes A(g[r - p], g[r]); then follows the tree
/// of p. (The paper does not cover such numbers; this rule is muster's.)
///
/// `layers`: `in` is this many tensors one after the other, of these numbers of elements, each with separate weights, as the
/// gradients of a network should have; {}: one tensor. Floating types; products are summed in f64, f16 and bf16 are combined and
/// sent in f32 and rounded once at the end. All ranks get the same bits. `in` and `out` are the same memory or do not overlap.
///
/// Recursive vector halving over sendrecv: a rank sends and receives about 2 (p - 1)/p of its vector, and 24 bytes a layer
/// in log2(p)^2 / 2 small messages; ranks above p send their vector once. Needs memory for 1.5 more vectors.
///
/// Use it with an optimiser that reduces the change of the weights in a local step; the learning rate is not scaled by the number
/// of ranks. Collective; blocks for at most the communicator's deadline at each step. Same count and layers on all ranks. Throws
/// comm_error.
void adasum(communicator& ranks, std::string_view name, tensor_view in, tensor_view out,
            std::span<std::size_t const> layers = {});

}  // namespace muster
