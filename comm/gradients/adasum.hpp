// The Adasum of gradients: a sum that counts once what they have in common.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "comm/communicator.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// How the Adasum of two vectors a and b is made of them: from_a * a + from_b * b.
struct adasum_weights {
    double from_a = 1;
    double from_b = 1;
    bool operator==(adasum_weights const&) const = default;
};

/// 1 - a.b / (2 |a|^2) and 1 - a.b / (2 |b|^2); 1 where the norm is 0. From the products a.b, a.a and b.b. Pure.
adasum_weights weigh(double ab, double aa, double bb) noexcept;

/// out = Adasum of the ranks' `in` (Maleki et al., arXiv 2006.02924): A(a, b) = (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b for
/// two vectors, which is a + b where they are orthogonal, a where they are equal and 0 where b = -a; for more by halves:
/// A(g[0..n)) = A(A(first half), A(second half)). It is not associative, so this tree is fixed. Of n ranks, n no power of two, p
/// the next lower one, rank r >= p is first folded into rank r - p: g[r - p] becomes A(g[r - p], g[r]); then follows the tree of
/// p. (The paper is silent on such numbers; this rule is muster's own.)
///
/// `layers`: `in` is that many tensors one after the other, of these numbers of elements, which are weighed each for itself, as
/// the gradients of a network should be; {}: one tensor. Floating types; products are summed in f64, f16 and bf16 combined, and
/// sent, in f32 and rounded once at the end. All ranks get the same bits. `in` and `out` are the same memory or do not overlap.
///
/// Recursive vector halving over sendrecv: a rank sends and receives about 2 (p - 1)/p of its vector, and 24 bytes a layer
/// in log2(p)^2 / 2 small messages; ranks above p send their vector once. Needs memory for 1.5 more vectors.
///
/// For an optimiser that reduces the change of the weights of a local step; the learning rate is not scaled by the number of
/// ranks. Collective, blocking, for at most the communicator's deadline at each step. Same count and layers on all ranks. Throws
/// comm_error.
void adasum(communicator& ranks, std::string_view name, tensor_view in, tensor_view out,
            std::span<std::size_t const> layers = {});

}  // namespace muster
