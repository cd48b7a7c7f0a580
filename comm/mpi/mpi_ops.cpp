#include "comm/mpi/mpi_ops.hpp"

#include <utility>

#include "comm/tensor/reduction_kernels.hpp"
#include "comm/tensor/with_dtype.hpp"

namespace muster::detail {

namespace {

template <dtype Type, reduction How>
void combine_into(void* in, void* inout, int* count, MPI_Datatype*) {
    std::array<void const*, 2> const sources{in, inout};
    combine(Type, How, sources, inout, static_cast<std::size_t>(*count));
}

MPI_User_function* function_for(dtype type, reduction how) noexcept {
    return with_dtype(type, [how]<typename T>() -> MPI_User_function* {
        constexpr dtype each = dtype_of<T>();
        switch (how) {
            case reduction::sum:
            case reduction::average: return &combine_into<each, reduction::sum>;
            case reduction::min: return &combine_into<each, reduction::min>;
            case reduction::max: return &combine_into<each, reduction::max>;
            case reduction::product: return &combine_into<each, reduction::product>;
            case reduction::adasum: break;  // refused before
        }
        return nullptr;
    });
}

/// MPI's own operation, or MPI_OP_NULL where ours means more.
MPI_Op built_in(dtype type, reduction how) noexcept {
    if (type == dtype::f16 || type == dtype::bf16) return MPI_OP_NULL;
    switch (how) {
        case reduction::sum:
        case reduction::average: return MPI_SUM;
        case reduction::product: return MPI_PROD;
        case reduction::min: return is_floating(type) ? MPI_OP_NULL : MPI_MIN;
        case reduction::max: return is_floating(type) ? MPI_OP_NULL : MPI_MAX;
        case reduction::adasum: break;
    }
    return MPI_OP_NULL;
}

}  // namespace

MPI_Datatype mpi_type(dtype type) noexcept {
    switch (type) {
        case dtype::f32: return MPI_FLOAT;
        case dtype::f64: return MPI_DOUBLE;
        case dtype::f16:
        case dtype::bf16: return MPI_UINT16_T;
        case dtype::i32: return MPI_INT32_T;
        case dtype::i64: return MPI_INT64_T;
        case dtype::u8: return MPI_UINT8_T;
        case dtype::i8: return MPI_INT8_T;
        case dtype::boolean:
        case dtype::i16:
        case dtype::u16: break;  // they come as bytes
    }
    return MPI_DATATYPE_NULL;
}

MPI_Op mpi_ops::get(dtype type, reduction how) {
    if (MPI_Op const native = built_in(type, how); native != MPI_OP_NULL) return native;
    unique_op& slot = made_.at(static_cast<std::size_t>(type)).at(static_cast<std::size_t>(how));
    if (!slot) {
        MPI_Op op = MPI_OP_NULL;
        check(MPI_Op_create(function_for(type, how), 1, &op), "MPI_Op_create");
        slot.reset(op);
    }
    return slot.get();
}

}  // namespace muster::detail
