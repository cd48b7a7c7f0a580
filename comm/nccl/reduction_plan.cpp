#include "comm/nccl/reduction_plan.hpp"

#include <cmath>

namespace muster::nccl {

namespace {

/// A power of two that both f16 and bf16 hold as a normal number: multiplying by it is exact, or rounded as the result is anyway.
bool is_exact(double factor) noexcept {
    int exponent = 0;
    return factor >= 0x1p-14 && factor <= 0x1p15 && std::frexp(factor, &exponent) == 0.5;
}

op plain_op(reduction how) noexcept {
    switch (how) {
        case reduction::sum: return op::sum;
        case reduction::average: return op::average;
        case reduction::min: return op::min;
        case reduction::max: return op::max;
        case reduction::product: return op::product;
        case reduction::adasum: break;  // refused before
    }
    return op::sum;
}

}  // namespace

type type_of(dtype element) noexcept {
    switch (element) {
        case dtype::f32: return type::f32;
        case dtype::f64: return type::f64;
        case dtype::f16: return type::f16;
        case dtype::bf16: return type::bf16;
        case dtype::i32: return type::i32;
        case dtype::i64: return type::i64;
        case dtype::i8: return type::i8;
        case dtype::u8:
        case dtype::boolean:
        case dtype::i16:
        case dtype::u16: break;  // the last three come as bytes
    }
    return type::u8;
}

reduction_plan plan_reduction(reduction how, dtype element, scaling const& scale, int ranks) noexcept {
    bool const adds = how == reduction::sum || how == reduction::average;
    if (!adds) return {scale.before, plain_op(how), false, 1, scale.after};
    double const divided = how == reduction::average ? 1.0 / ranks : 1.0;
    bool const narrow = element == dtype::f16 || element == dtype::bf16;
    if (narrow &&
        !(is_exact(scale.before) && is_exact(scale.after) && is_exact(divided) && is_exact(scale.before * divided * scale.after)))
        return {scale.before * divided, op::sum, false, 1, scale.after};
    if (scale.is_one()) return {1, plain_op(how), false, 1, 1};
    return {1, op::sum, true, scale.before * divided * scale.after, 1};
}

}  // namespace muster::nccl
