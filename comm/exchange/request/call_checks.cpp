#include "comm/exchange/request/call_checks.hpp"

#include <fmt/format.h>

#include <cmath>

namespace muster::detail {

namespace {

std::string fault_of_view(tensor_view const& view, char const* role) {
    if (size_of(view.type) == 0) return fmt::format("\"{}\" has the unknown type {}", role, static_cast<int>(view.type));
    if (view.data == nullptr && view.count != 0) return fmt::format("\"{}\" has {} elements at a null pointer", role, view.count);
    if (reinterpret_cast<std::uintptr_t>(view.data) % size_of(view.type) != 0)
        return fmt::format("\"{}\" at {} is not aligned for {}", role, view.data, to_string(view.type));
    return {};
}

bool overlap(tensor_view const& a, tensor_view const& b) {
    auto const first = reinterpret_cast<std::uintptr_t>(a.data), second = reinterpret_cast<std::uintptr_t>(b.data);
    return a.count != 0 && b.count != 0 && first < second + b.bytes() && second < first + a.bytes();
}

bool is_reduced(exchange_kind kind) {
    return kind == exchange_kind::allreduce || kind == exchange_kind::reducescatter || kind == exchange_kind::prepare;
}

bool has_one_size(exchange_kind kind) {
    return kind == exchange_kind::allreduce || kind == exchange_kind::broadcast || kind == exchange_kind::prepare;
}

/// What a call says of all its tensors.
struct call_rules {
    exchange_kind kind = exchange_kind::allreduce;
    reduction how = reduction::sum;
    scaling scale{};
};

std::string fault_of_scale(scaling const& scale) {
    if (std::isfinite(scale.before) && std::isfinite(scale.after)) return {};
    return fmt::format("the factors {} and {} are not both finite", scale.before, scale.after);
}

std::string fault_of_tensor(call_rules const& what, tensor_shape const& shape, tensor_io const& io) {
    if (auto fault = fault_of_view(io.in, "in"); !fault.empty()) return fault;
    if (static_cast<std::size_t>(shape.elements()) != io.in.count)
        return fmt::format("the shape {} has {} elements, \"in\" {}", to_string(shape), shape.elements(), io.in.count);
    bool const same_size = has_one_size(what.kind);
    bool const has_out = io.out.data != nullptr || (same_size && io.in.count != 0);
    if (has_out) {
        if (auto fault = fault_of_view(io.out, "out"); !fault.empty()) return fault;
        if (io.out.type != io.in.type)
            return fmt::format("\"in\" is {}, \"out\" is {}", to_string(io.in.type), to_string(io.out.type));
        if (io.out.where != io.in.where)
            return fmt::format("\"in\" lies in {} memory, \"out\" in {}", to_string(io.in.where), to_string(io.out.where));
        if (same_size && io.out.count != io.in.count)
            return fmt::format("\"in\" has {} elements, \"out\" {}", io.in.count, io.out.count);
        if ((!same_size || io.out.data != io.in.data) && overlap(io.in, io.out))
            return "\"in\" and \"out\" overlap; give the same memory twice where that is allowed, or apart";
    }
    if (!is_reduced(what.kind)) return {};
    if (is_only_moved(io.in.type))
        return fmt::format("{} is gathered, broadcast and sent, but not reduced; convert it", to_string(io.in.type));
    if (is_floating(io.in.type)) return {};
    if (what.how == reduction::average || what.how == reduction::adasum)
        return fmt::format("{} of {} is not an integer; reduce the sum, or convert", to_string(what.how), to_string(io.in.type));
    if (!what.scale.is_one()) return fmt::format("{} cannot be scaled; convert to a floating type", to_string(io.in.type));
    return {};
}

std::string fault_of_share(tensor_shape const& shape, tensor_view const& out, int ranks, int rank) {
    auto const rows = static_cast<std::size_t>(shape.rows());
    auto const share = share_of(rows, ranks, rank).count * static_cast<std::size_t>(shape.row_elements());
    if (out.data == nullptr || out.count == share) return {};
    return fmt::format("\"out\" has {} elements and this rank's share of {} is {}", out.count, to_string(shape), share);
}

std::string fault_of_message(exchange_request const& what, memory_kind where, int ranks, int rank) {
    auto const peer = what.numbers.at(what.root == rank ? 1 : 0);
    if (peer < 0 || peer >= ranks) return fmt::format("rank {} does not lie in a set of {}", peer, ranks);
    if (peer == rank) return "a rank has no messages for itself; copy";
    if (where != memory_kind::host) return "messages are for host memory; copy the tensor there";
    return {};
}

/// Which tensor of a group.
std::string prefix_of(exchange_request const& what, tensor_spec const& tensor) {
    return what.tensors.size() == 1 ? std::string{} : fmt::format("tensor \"{}\": ", tensor.name);
}

std::string fault_of_splits(exchange_request const& what, int ranks) {
    if (what.numbers.size() != static_cast<std::size_t>(ranks))
        return fmt::format("{} splits for {} ranks; give one for each", what.numbers.size(), ranks);
    std::int64_t sum = 0;
    std::int64_t const rows = what.tensors.front().shape.rows();
    for (std::int64_t const each : what.numbers) {
        if (each < 0 || each > rows) return fmt::format("the split {} of {} rows", each, rows);
        sum += each;
    }
    return sum == rows ? std::string{} : fmt::format("the splits sum to {}, the tensor has {} rows", sum, rows);
}

}  // namespace

std::string fault_of(single_allreduce const& what) {
    if (auto fault = fault_of_tensor({exchange_kind::allreduce, what.how, what.scale}, what.shape, what.io); !fault.empty())
        return fault;
    return fault_of_scale(what.scale);
}

std::string fault_of(pending_request const& what, int ranks, int rank) {
    exchange_request const& asked = *what.what;
    auto const tensors = what.tensors();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        auto fault = fault_of_tensor({asked.kind, asked.how, asked.scale}, asked.tensors[i].shape, tensors[i]);
        if (!fault.empty()) return prefix_of(asked, asked.tensors[i]) + fault;
    }
    if (auto fault = fault_of_scale(asked.scale); !fault.empty()) return fault;
    bool const has_rows = asked.kind == exchange_kind::allgather || asked.kind == exchange_kind::alltoall ||
                          asked.kind == exchange_kind::reducescatter;
    for (auto const& each : asked.tensors)
        if (has_rows && each.shape.dimensions == 0)
            return fmt::format("{}a scalar has no rows; give it a shape of one dimension", prefix_of(asked, each));
    if (asked.kind == exchange_kind::reducescatter) {
        if (asked.how == reduction::adasum) return "adasum is there for allreduce only";
        for (std::size_t i = 0; i < tensors.size(); ++i)
            if (auto fault = fault_of_share(asked.tensors[i].shape, tensors[i].out, ranks, rank); !fault.empty())
                return prefix_of(asked, asked.tensors[i]) + fault;
    }
    if (asked.kind == exchange_kind::message) return fault_of_message(asked, tensors.front().in.where, ranks, rank);
    if (asked.kind == exchange_kind::broadcast && (asked.root < 0 || asked.root >= ranks))
        return fmt::format("the root {} does not lie in a set of {}", asked.root, ranks);
    if (asked.kind == exchange_kind::alltoall) return fault_of_splits(asked, ranks);
    return {};
}

}  // namespace muster::detail
