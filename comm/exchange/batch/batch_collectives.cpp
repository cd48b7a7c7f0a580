#include "comm/exchange/batch/batch_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace muster::detail {

namespace {

std::size_t row_of(agreement const& agreed) {
    return static_cast<std::size_t>(agreed.what.tensors.front().shape.row_elements());
}

/// An alltoall as rank `me` sees it.
struct alltoall_counts {
    alltoall_counts(agreement const& agreed, int ranks, int me) : row(row_of(agreed)) {
        auto const world = static_cast<std::size_t>(ranks), own = static_cast<std::size_t>(me);
        for (std::size_t rank = 0; rank < world; ++rank) {
            sent += send.emplace_back(static_cast<std::size_t>(agreed.numbers[own * world + rank]) * row);
            rows.push_back(agreed.numbers[rank * world + own]);
            total += receive.emplace_back(static_cast<std::size_t>(rows.back()) * row);
        }
    }

    std::size_t row = 0;                     ///< elements of a row
    std::vector<std::size_t> send, receive;  ///< elements to and from each rank
    std::vector<std::int64_t> rows;          ///< that come from each rank
    std::size_t sent = 0, total = 0;         ///< elements in all: sent, received
};

/// The caller's output if it has `count` elements. Else null: the exchange gives memory, and a wrong size is a fault that is told
/// when the other ranks have their results.
void* own_output(pending_request& unit, communicator const& ranks, std::size_t count) {
    tensor_view const& given = unit.tensors().front().out;
    if (given.data == nullptr || given.count == count) return given.data;
    unit.code = errc::usage;
    unit.fault = fmt::format(
        "{} (rank {} of {} on {}): \"out\" has {} elements and the result {}; give as many, or no \"out\" to have memory given",
        describe(unit.what->kind, unit.what->name), ranks.rank(), ranks.size(), ranks.who().host, given.count, count);
    return nullptr;
}

}  // namespace

batch_collectives::batch_collectives(batch_parts const& with)
    : set_(with.set), ranks_(with.ranks), shared_(with.shared), batch_(with.batch), agreed_(with.agreed), units_(with.units) {
    std::string const& name = unit_of(only()).what.name;
    label_ = batch_.items.size() == 1 ? name : fmt::format("{} (+{})", name, batch_.items.size() - 1);
}

tensor_io const* batch_collectives::io_of(fusion_item const& item) const {
    auto const& unit = units_[item.unit];
    return unit ? &unit->tensors()[item.tensor] : nullptr;
}

dtype batch_collectives::sent_type() const noexcept {
    if (!is_compressed()) return batch_.type;
    return batch_.wire == compression::f16 ? dtype::f16 : dtype::bf16;
}

void batch_collectives::start_collective() {
    begin_ = exchange_clock::now();
    switch (batch_.kind) {
        case exchange_kind::allreduce: start_allreduce(); break;
        case exchange_kind::broadcast: start_broadcast(); break;
        case exchange_kind::allgather: start_allgather(); break;
        case exchange_kind::reducescatter: start_reducescatter(); break;
        case exchange_kind::alltoall: start_alltoall(); break;
        default: break;
    }
}

tensor_view batch_collectives::single_input() {
    if (tensor_io const* const io = io_of(only())) return io->in;
    tensor_view view{nullptr, count_of(only()), batch_.type, batch_.where};
    view.data = first_scratch(std::max<std::size_t>(view.bytes(), 1));
    fill(view);
    return view;
}

/// The place of `count` elements that come as so many rows from each rank: the caller's memory if that is its size, else memory
/// that the exchange gives.
tensor_view batch_collectives::output(std::size_t count, std::vector<std::int64_t> rows) {
    tensor_view view{nullptr, count, batch_.type, batch_.where};
    std::size_t const bytes = std::max<std::size_t>(view.bytes(), 1);
    pending_request* const unit = single();
    if (unit == nullptr) {
        view.data = second_scratch(bytes);
        return view;
    }
    unit->has_extras = true;
    unit->rows = std::move(rows);
    view.data = own_output(*unit, ranks_, count);
    if (view.data == nullptr) view.data = give_memory(*unit, bytes);
    unit->result = view;
    return view;
}

void batch_collectives::start_broadcast() {
    tensor_io const* const io = io_of(only());
    int const root = unit_of(only()).what.root;
    tensor_view const view = io != nullptr ? io->out : single_input();
    if (io != nullptr && ranks_.rank() == root && io->in.data != io->out.data) copy(io->out.data, io->in.data, view.bytes());
    operation_ = ranks_.broadcast(label_, view, root);
}

void batch_collectives::start_allgather() {
    agreement const& agreed = unit_of(only());
    std::vector<std::size_t> counts;
    std::size_t total = 0;
    for (std::int64_t const rows : agreed.numbers) total += counts.emplace_back(static_cast<std::size_t>(rows) * row_of(agreed));
    tensor_view const in = single() != nullptr ? single_input() : nothing();
    operation_ = ranks_.allgather(label_, in, output(total, agreed.numbers), counts);
}

void batch_collectives::start_reducescatter() {
    tensor_shape const& shape = spec_of(only()).shape;
    auto const rows = static_cast<std::size_t>(shape.rows()), row = static_cast<std::size_t>(shape.row_elements());
    tensor_view const in = single_input();
    auto const mine = share_of(rows, ranks_.size(), ranks_.rank());
    tensor_view const out = output(mine.count * row, {static_cast<std::int64_t>(mine.count)});
    // Shares are of rows here and of elements in the communicator.
    if (row == 1 || rows % static_cast<std::size_t>(ranks_.size()) == 0)
        operation_ = ranks_.reducescatter(label_, in, out, batch_.how, batch_.scale);
    else
        start_uneven_reducescatter(in, out, {mine.first * row, mine.count * row});
}

void batch_collectives::start_alltoall() {
    alltoall_counts counts(unit_of(only()), ranks_.size(), ranks_.rank());
    pending_request const* const unit = single();
    tensor_view in = unit != nullptr ? unit->tensors().front().in : nothing();
    if (unit != nullptr && counts.sent != in.count) {
        // A rank has joined: its rows are not sent, and the other ranks' rows lie gap-free.
        std::size_t const element = size_of(in.type);
        std::byte const* from = static_cast<std::byte const*>(in.data);
        std::byte* to = first_scratch(std::max<std::size_t>(counts.sent * element, 1));
        in = {to, counts.sent, in.type, in.where};
        for (std::size_t rank = 0; rank < counts.send.size(); ++rank) {
            std::size_t const bytes = counts.send[rank] * element;
            copy(to, from, bytes);
            to += bytes;
            from += static_cast<std::size_t>(unit->what->numbers[rank]) * counts.row * element;
        }
    }
    operation_ = ranks_.alltoall(label_, in, counts.send, output(counts.total, std::move(counts.rows)), counts.receive);
}

}  // namespace muster::detail
