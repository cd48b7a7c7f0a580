#include <cmath>

#include "comm/nccl/nccl_enqueue.hpp"

namespace muster::nccl {

namespace {

/// Collects what the calls of a group return: the first error, else in_progress if one returned that.
class call_log {
  public:
    void add(int code, std::string_view call) noexcept {
        bool const error = code != success && code != in_progress;
        bool const error_before = result_.code != success && result_.code != in_progress;
        if (error_before || code == success) return;
        if (error || result_.code == success) result_ = {code, call};
    }
    bool failed() const noexcept { return result_.code != success && result_.code != in_progress; }
    enqueue_result result() const noexcept { return result_; }

  private:
    enqueue_result result_;
};

/// Runs `body(log)` between ncclGroupStart and ncclGroupEnd.
template <typename Body>
enqueue_result grouped(library const& with, Body&& body) {
    call_log log;
    log.add(with.group_start(), "ncclGroupStart");
    if (log.failed()) return log.result();
    body(log);
    log.add(with.group_end(), "ncclGroupEnd");
    return log.result();
}

void* at_element(tensor_view const& of, std::size_t first) noexcept {
    return static_cast<std::byte*>(of.data) + first * size_of(of.type);
}

enqueue_result uneven_allgather(enqueue_place const& at, collective const& what) {
    return grouped(at.with, [&](call_log& log) {
        std::size_t first = 0;
        for (int root = 0; root < at.size && !log.failed(); ++root) {
            std::size_t const count = what.receive_counts[static_cast<std::size_t>(root)];
            void* const place = at_element(what.out, first);
            first += count;
            if (count == 0) continue;
            log.add(at.with.broadcast(root == at.rank ? what.in.data : place, place, count, type_of(what.out.type), root, at.comm,
                                      at.stream),
                    "ncclBroadcast");
        }
    });
}

enqueue_result uneven_reducescatter(enqueue_place const& at, collective const& what, op how) {
    return grouped(at.with, [&](call_log& log) {
        for (int root = 0; root < at.size && !log.failed(); ++root) {
            element_range const share = share_of(what.in.count, at.size, root);
            if (share.count == 0) continue;
            log.add(at.with.reduce(at_element(what.in, share.first), root == at.rank ? what.out.data : nullptr, share.count,
                                   type_of(what.in.type), how, root, at.comm, at.stream),
                    "ncclReduce");
        }
    });
}

void send_and_receive(enqueue_place const& at, call_log& log, int peer, tensor_view const& in, tensor_view const& out) {
    if (in.count != 0) log.add(at.with.send(in.data, in.count, type_of(in.type), peer, at.comm, at.stream), "ncclSend");
    if (out.count != 0 && !log.failed())
        log.add(at.with.receive(out.data, out.count, type_of(out.type), peer, at.comm, at.stream), "ncclRecv");
}

enqueue_result alltoall(enqueue_place const& at, collective const& what) {
    return grouped(at.with, [&](call_log& log) {
        std::size_t sent = 0, received = 0;
        for (int peer = 0; peer < at.size && !log.failed(); ++peer) {
            auto const which = static_cast<std::size_t>(peer);
            send_and_receive(at, log, peer, part_of(what.in, {sent, what.send_counts[which]}),
                             part_of(what.out, {received, what.receive_counts[which]}));
            sent += what.send_counts[which];
            received += what.receive_counts[which];
        }
    });
}

}  // namespace

enqueue_result enqueue(enqueue_place const& at, collective const& what, op how) {
    using kind = collective::kind;
    type const element = type_of(what.out.type);
    switch (what.what) {
        case kind::allreduce:
            return {at.with.all_reduce(what.in.data, what.out.data, what.out.count, element, how, at.comm, at.stream),
                    "ncclAllReduce"};
        case kind::broadcast:
            return {at.with.broadcast(what.in.data, what.out.data, what.out.count, element, what.root, at.comm, at.stream),
                    "ncclBroadcast"};
        case kind::allgather:
            if (!what.receive_counts.empty()) return uneven_allgather(at, what);
            return {at.with.all_gather(what.in.data, what.out.data, what.in.count, element, at.comm, at.stream), "ncclAllGather"};
        case kind::reducescatter:
            if (what.in.count % static_cast<std::size_t>(at.size) != 0) return uneven_reducescatter(at, what, how);
            return {at.with.reduce_scatter(what.in.data, what.out.data, what.out.count, element, how, at.comm, at.stream),
                    "ncclReduceScatter"};
        case kind::alltoall: return alltoall(at, what);
        case kind::sendrecv:
            return grouped(at.with, [&](call_log& log) { send_and_receive(at, log, what.root, what.in, what.out); });
        case kind::barrier: break;
    }
    return {at.with.all_reduce(at.scratch, at.scratch, 1, type::i32, op::sum, at.comm, at.stream), "ncclAllReduce"};
}

namespace {

/// Returns whether it is a power of two that both f16 and bf16 hold as a normal number: its products are exact, or rounded as the
/// result is anyway.
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
        case dtype::u16: break;  // the last three are sent as bytes
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
