#include "comm/exchange/batch/batch_counts.hpp"

#include <fmt/format.h>

namespace muster::detail {

namespace {

std::size_t row_of(agreement const& agreed) {
    return static_cast<std::size_t>(agreed.what.tensors.front().shape.row_elements());
}

}  // namespace

std::vector<std::size_t> gather_counts(agreement const& agreed) {
    std::vector<std::size_t> counts;
    for (std::int64_t const rows : agreed.numbers) counts.push_back(static_cast<std::size_t>(rows) * row_of(agreed));
    return counts;
}

alltoall_counts::alltoall_counts(agreement const& agreed, int ranks, int me) : row(row_of(agreed)) {
    auto const world = static_cast<std::size_t>(ranks), own = static_cast<std::size_t>(me);
    for (std::size_t rank = 0; rank < world; ++rank) {
        sent += send.emplace_back(static_cast<std::size_t>(agreed.numbers[own * world + rank]) * row);
        rows.push_back(agreed.numbers[rank * world + own]);
        total += receive.emplace_back(static_cast<std::size_t>(rows.back()) * row);
    }
}

void* own_output(pending& unit, communicator const& ranks, std::size_t count, std::vector<std::int64_t> rows) {
    unit.has_extras = true;
    unit.rows = std::move(rows);
    tensor_view const& given = unit.tensors().front().out;
    if (given.data == nullptr || given.count == count) return given.data;
    unit.code = errc::usage;
    unit.fault = fmt::format(
        "{} (rank {} of {} on {}): \"out\" has {} elements and the result {}; give none to have memory "
        "given, or as many",
        describe(unit.what->kind, unit.what->name), ranks.rank(), ranks.size(), ranks.who().host, given.count, count);
    return nullptr;
}

}  // namespace muster::detail
