#include "comm/exchange/request/exchange_request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "comm/backend/comm_error.hpp"

namespace muster {

std::string_view to_string(exchange_kind kind) noexcept {
    switch (kind) {
        case exchange_kind::allreduce: return "allreduce";
        case exchange_kind::allgather: return "allgather";
        case exchange_kind::broadcast: return "broadcast";
        case exchange_kind::reducescatter: return "reducescatter";
        case exchange_kind::alltoall: return "alltoall";
        case exchange_kind::barrier: return "barrier";
        case exchange_kind::join: return "join";
        case exchange_kind::include: return "include";
        case exchange_kind::leave: return "leave";
        case exchange_kind::prepare: return "prepare";
        case exchange_kind::give_up: return "give up";
        case exchange_kind::open_device: return "open device";
        case exchange_kind::make_set: return "make process set";
        case exchange_kind::remove_set: return "remove process set";
        case exchange_kind::message: return "message";
    }
    return "unknown";
}

std::span<std::int64_t const> parties_of(exchange_request const& what) noexcept {
    if (what.kind < exchange_kind::make_set) return {};
    return what.numbers;
}

bool is_repetition(exchange_request const& before, exchange_request const& now) noexcept {
    return before.kind == now.kind && before.how == now.how && before.scale == now.scale && before.wire == now.wire &&
           before.error_feedback == now.error_feedback && before.root == now.root && before.name == now.name &&
           before.numbers == now.numbers && before.tensors == now.tensors;
}

namespace {

/// Returns whether ranks may give different numbers of rows.
bool rows_are_free(exchange_kind kind) noexcept {
    return kind == exchange_kind::allgather || kind == exchange_kind::alltoall;
}

bool shapes_agree(exchange_kind kind, tensor_shape const& a, tensor_shape const& b) noexcept {
    if (!rows_are_free(kind)) return a == b;
    if (a.dimensions != b.dimensions) return false;
    auto const first = a.view(), second = b.view();
    return first.empty() || std::equal(first.begin() + 1, first.end(), second.begin() + 1);
}

std::string describe_wire(exchange_request const& what) {
    return fmt::format("compression {}{}", to_string(what.wire), what.error_feedback ? " with error feedback" : "");
}

disagreement compare_tensors(exchange_request const& mine, exchange_request const& theirs) {
    if (mine.tensors.size() != theirs.tensors.size())
        return {fmt::format("{} tensors", mine.tensors.size()), fmt::format("{} tensors", theirs.tensors.size())};
    for (std::size_t i = 0; i < mine.tensors.size(); ++i) {
        tensor_spec const& a = mine.tensors[i];
        tensor_spec const& b = theirs.tensors[i];
        std::string const of = mine.tensors.size() == 1 ? std::string{} : fmt::format(" of \"{}\"", a.name);
        if (a.name != b.name && mine.tensors.size() > 1)
            return {fmt::format("\"{}\" as tensor {} of the group", a.name, i), fmt::format("\"{}\"", b.name)};
        if (a.type != b.type) return {fmt::format("type {}{}", to_string(a.type), of), fmt::format("type {}", to_string(b.type))};
        if (!shapes_agree(mine.kind, a.shape, b.shape))
            return {fmt::format("shape {}{}", to_string(a.shape), of), fmt::format("shape {}", to_string(b.shape))};
        if (a.where != b.where)
            return {fmt::format("{} memory{}", to_string(a.where), of), fmt::format("{} memory", to_string(b.where))};
    }
    return {};
}

}  // namespace

disagreement compare(exchange_request const& mine, exchange_request const& theirs) {
    if (mine.kind != theirs.kind)
        return {fmt::format("operation {}", to_string(mine.kind)), fmt::format("operation {}", to_string(theirs.kind))};
    if (mine.how != theirs.how)
        return {fmt::format("reduction {}", to_string(mine.how)), fmt::format("reduction {}", to_string(theirs.how))};
    if (!(mine.scale == theirs.scale))
        return {fmt::format("scaling by {} before and {} after", mine.scale.before, mine.scale.after),
                fmt::format("scaling by {} before and {} after", theirs.scale.before, theirs.scale.after)};
    if (mine.wire != theirs.wire || mine.error_feedback != theirs.error_feedback)
        return {describe_wire(mine), describe_wire(theirs)};
    if (mine.root != theirs.root) return {fmt::format("root {}", mine.root), fmt::format("root {}", theirs.root)};
    bool const lists_ranks = mine.kind == exchange_kind::include || !parties_of(mine).empty();
    if (lists_ranks && mine.numbers != theirs.numbers)
        return {fmt::format("ranks [{}]", fmt::join(mine.numbers, ", ")),
                fmt::format("ranks [{}]", fmt::join(theirs.numbers, ", "))};
    return compare_tensors(mine, theirs);
}

std::string describe(exchange_kind kind, std::string_view name) {
    // These names are words to be read after the kind.
    if (kind >= exchange_kind::make_set) return fmt::format("{} {}", to_string(kind), shown_name(name));
    if (name.empty() || name.front() == internal_name) return std::string(to_string(kind));
    return fmt::format("{} of \"{}\"", to_string(kind), name);
}

std::int64_t tensor_shape::row_elements() const noexcept {
    std::int64_t product = 1;
    for (std::size_t i = 1; i < dimensions; ++i) product *= extents[i];
    return product;
}

tensor_shape make_shape(std::span<std::int64_t const> extents) {
    if (extents.size() > tensor_shape::most_dimensions)
        throw comm_error(errc::usage, fmt::format("a tensor of {} dimensions; {} are supported: merge some", extents.size(),
                                                  tensor_shape::most_dimensions));
    constexpr std::int64_t most = std::int64_t{1} << 62;
    tensor_shape shape;
    std::int64_t product = 1;
    for (std::int64_t const extent : extents) {
        if (extent < 0) throw comm_error(errc::usage, fmt::format("the extent {} of a shape is negative", extent));
        // The other extents must not overflow even if one is zero: row_elements() multiplies some of them alone.
        if (extent > 1 && product > most / extent)
            throw comm_error(errc::usage, fmt::format("the shape [{}] has more than 2^62 elements", fmt::join(extents, ", ")));
        product *= extent > 1 ? extent : 1;
        shape.extents[shape.dimensions++] = extent;
    }
    return shape;
}

tensor_shape flat_shape(std::size_t elements) {
    tensor_shape shape;
    shape.extents[0] = static_cast<std::int64_t>(elements);
    shape.dimensions = 1;
    return shape;
}

std::string to_string(tensor_shape const& shape) {
    return fmt::format("[{}]", fmt::join(shape.view(), ", "));
}

}  // namespace muster
