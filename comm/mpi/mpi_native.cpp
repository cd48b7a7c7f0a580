#include "comm/mpi/mpi_native.hpp"

#include <algorithm>

#include "comm/tensor/reduction_kernels.hpp"

namespace muster::detail {

namespace {

/// Calls `body(offset in elements, elements)` for pieces of the tensor.
template <typename Body>
void for_pieces(tensor_view const& view, Body&& body) {
    std::size_t const most = largest_message_bytes / size_of(view.type);
    for (std::size_t first = 0; first < view.count; first += most) body(first, std::min(most, view.count - first));
}

}  // namespace

// All pieces start at once: collectives of one communicator must start in the same order on all ranks, so no piece may start
// later, when the one before it happens to finish.

void mpi_native::start(direct_world const& world, mpi_ops& ops, collective const& what) {
    world_ = world;
    what_ = what;
    requests_.clear();
    types_.clear();
    switch (what.what) {
        case collective::kind::allreduce: return start_allreduce(ops);
        case collective::kind::broadcast: return start_broadcast();
        case collective::kind::allgather: return start_allgather();
        default: check(MPI_Ibarrier(world.comm, next_request()), "MPI_Ibarrier");
    }
}

void mpi_native::start_allreduce(mpi_ops& ops) {
    bool in_place = what_.in.data == what_.out.data;
    if (what_.scale.before != 1) {
        multiply(what_.in.type, what_.in.data, what_.out.data, what_.in.count, what_.scale.before);
        in_place = true;
    }
    for_pieces(what_.in, [&](std::size_t first, std::size_t count) {
        std::size_t const at = first * size_of(what_.in.type);
        void const* const in = in_place ? MPI_IN_PLACE : static_cast<std::byte const*>(what_.in.data) + at;
        check(MPI_Iallreduce(in, static_cast<std::byte*>(what_.out.data) + at, static_cast<int>(count), mpi_type(what_.in.type),
                             ops.get(what_.in.type, what_.how), world_.comm, next_request()),
              "MPI_Iallreduce");
    });
}

void mpi_native::start_broadcast() {
    for_pieces(what_.out, [&](std::size_t first, std::size_t count) {
        check(MPI_Ibcast(static_cast<std::byte*>(what_.out.data) + first * size_of(what_.out.type), static_cast<int>(count),
                         mpi_type(what_.out.type), what_.root, world_.comm, next_request()),
              "MPI_Ibcast");
    });
}

/// The places of one piece in `out` lie a whole `in` apart: a type of the piece's size with that extent describes them.
void mpi_native::start_allgather() {
    auto* const own_place = static_cast<std::byte*>(what_.out.data) + static_cast<std::size_t>(world_.rank) * what_.in.bytes();
    bool const in_place = what_.in.data == own_place;
    for_pieces(what_.in, [&](std::size_t first, std::size_t count) {
        std::size_t const at = first * size_of(what_.in.type);
        MPI_Datatype piece = MPI_DATATYPE_NULL, spaced = MPI_DATATYPE_NULL;
        check(MPI_Type_contiguous(static_cast<int>(count), mpi_type(what_.in.type), &piece), "MPI_Type_contiguous");
        unique_type const owner(piece);
        check(MPI_Type_create_resized(piece, 0, static_cast<MPI_Aint>(what_.in.bytes()), &spaced), "MPI_Type_create_resized");
        types_.emplace_back(spaced);
        check(MPI_Type_commit(&spaced), "MPI_Type_commit");
        void const* const in = in_place ? MPI_IN_PLACE : static_cast<std::byte const*>(what_.in.data) + at;
        check(MPI_Iallgather(in, static_cast<int>(count), mpi_type(what_.in.type), static_cast<std::byte*>(what_.out.data) + at,
                             1, spaced, world_.comm, next_request()),
              "MPI_Iallgather");
    });
}

bool mpi_native::advance() {
    int all = 0;
    check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE), "MPI_Testall");
    if (all == 0) return false;
    types_.clear();
    if (what_.what != collective::kind::allreduce) return true;
    if (what_.how == reduction::average) divide(what_.out.type, what_.out.data, what_.out.count, world_.size);
    if (what_.scale.after != 1) multiply(what_.out.type, what_.out.data, what_.out.data, what_.out.count, what_.scale.after);
    return true;
}

bool mpi_native::released() noexcept {
    int all = 0;
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    return all != 0;
}

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

/// Returns MPI's own operation, or MPI_OP_NULL if it has none of that meaning.
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
        case dtype::u16: break;  // sent as bytes
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
