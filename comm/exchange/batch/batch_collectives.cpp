#include "comm/exchange/batch/batch_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "comm/backend/speaker.hpp"

namespace muster::detail {

namespace {

/// Returns the tensor as it is sent: as bytes if the backends do not know its type.
tensor_view as_sent(tensor_view const& view) noexcept {
    if (!is_only_moved(view.type)) return view;
    return {view.data, view.bytes(), dtype::u8, view.where};
}

std::vector<std::size_t> counts_as_sent(std::vector<std::size_t> counts, dtype type) {
    if (is_only_moved(type))
        for (auto& each : counts) each *= size_of(type);
    return counts;
}

/// An alltoall as rank `me` sees it.
struct alltoall_counts {
    alltoall_counts(agreement const& agreed, std::size_t of_row, int ranks, int me) : row(of_row) {
        auto const world = static_cast<std::size_t>(ranks), own = static_cast<std::size_t>(me);
        for (std::size_t rank = 0; rank < world; ++rank) {
            sent += send.emplace_back(static_cast<std::size_t>(agreed.numbers[own * world + rank]) * row);
            rows.push_back(agreed.numbers[rank * world + own]);
            total += receive.emplace_back(static_cast<std::size_t>(rows.back()) * row);
        }
    }

    std::size_t row = 0;                     ///< elements of a row
    std::vector<std::size_t> send, receive;  ///< elements to and from each rank
    std::vector<std::int64_t> rows;          ///< rows from each rank
    std::size_t sent = 0, total = 0;         ///< elements in all: sent, received
};

}  // namespace

batch_collectives::batch_collectives(batch_parts const& with)
    : set_(with.set), ranks_(with.ranks), shared_(with.shared), batch_(with.batch), agreed_(with.agreed), units_(with.units) {
    std::string_view const name = shown_name(unit_of(only()).what.name);
    label_ = batch_.items.size() == 1 ? std::string(name) : fmt::format("{} (+{})", name, batch_.items.size() - 1);
}

/// Returns the caller's output if it has `count` elements, else null: then the exchange gives memory, and a wrong size is
/// reported when the other ranks have their results.
void* batch_collectives::own_output(pending_request& unit, std::size_t count) const {
    tensor_view const& given = unit.tensors()[only().tensor].out;
    if (given.data == nullptr || given.count == count) return given.data;
    unit.code = errc::usage;
    std::string const of = unit.many ? fmt::format(" of \"{}\"", spec_of(only()).name) : std::string{};
    unit.fault =
        fmt::format("{} ({}): \"out\"{} has {} elements and the result {}; give it this size, or no \"out\" to have memory given",
                    describe(unit.what->kind, unit.what->name), speaker(ranks_.who()), of, given.count, count);
    return nullptr;
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
        case exchange_kind::message: start_message(); break;
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

/// Returns the place of `count` elements, of which each rank sends this number of rows: the caller's memory if its size is right,
/// else memory that the exchange gives.
tensor_view batch_collectives::output(std::size_t count, std::vector<std::int64_t> rows) {
    tensor_view view{nullptr, count, batch_.type, batch_.where};
    std::size_t const bytes = std::max<std::size_t>(view.bytes(), 1);
    pending_request* const unit = single();
    if (unit == nullptr) {
        view.data = second_scratch(bytes);
        return view;
    }
    unit->has_extras = true;
    group_result* const part = unit->parts.empty() ? nullptr : &unit->parts.at(only().tensor);
    (part != nullptr ? part->rows : unit->rows) = std::move(rows);
    view.data = own_output(*unit, count);
    if (view.data == nullptr) view.data = give_memory(*unit, part, bytes);
    (part != nullptr ? part->view : unit->result) = view;
    return view;
}

void batch_collectives::start_broadcast() {
    tensor_io const* const io = io_of(only());
    int const root = unit_of(only()).what.root;
    tensor_view const view = io != nullptr ? io->out : single_input();
    if (io != nullptr && ranks_.rank() == root && io->in.data != io->out.data) copy(io->out.data, io->in.data, view.bytes());
    operation_ = ranks_.broadcast(label_, as_sent(view), root);
}

void batch_collectives::start_allgather() {
    // The numbers of a group's tensors follow each other.
    auto const ranks = static_cast<std::size_t>(ranks_.size());
    auto const numbers = std::span(unit_of(only()).numbers).subspan(only().tensor * ranks, ranks);
    std::vector<std::size_t> counts;
    std::size_t total = 0;
    for (std::int64_t const rows : numbers) total += counts.emplace_back(static_cast<std::size_t>(rows) * row_elements());
    tensor_view const in = single() != nullptr ? single_input() : nothing();
    auto const out = output(total, {numbers.begin(), numbers.end()});
    operation_ = ranks_.allgather(label_, as_sent(in), as_sent(out), counts_as_sent(std::move(counts), batch_.type));
}

void batch_collectives::start_reducescatter() {
    tensor_shape const& shape = spec_of(only()).shape;
    auto const rows = static_cast<std::size_t>(shape.rows()), row = static_cast<std::size_t>(shape.row_elements());
    tensor_view const in = single_input();
    auto const mine = share_of(rows, ranks_.size(), ranks_.rank());
    tensor_view const out = output(mine.count * row, {static_cast<std::int64_t>(mine.count)});
    // Shares consist of rows here and of elements in the communicator.
    if (row == 1 || rows % static_cast<std::size_t>(ranks_.size()) == 0)
        operation_ = ranks_.reducescatter(label_, in, out, batch_.how, batch_.scale);
    else
        start_uneven_reducescatter(in, out, {mine.first * row, mine.count * row});
}

void batch_collectives::start_alltoall() {
    alltoall_counts counts(unit_of(only()), row_elements(), ranks_.size(), ranks_.rank());
    pending_request const* const unit = single();
    tensor_view in = unit != nullptr ? unit->tensors().front().in : nothing();
    if (unit != nullptr && counts.sent != in.count) {
        // A rank has joined: nothing is sent to it, and the rows for the other ranks must lie gap-free.
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
    auto const out = output(counts.total, std::move(counts.rows));
    operation_ = ranks_.alltoall(label_, as_sent(in), counts_as_sent(std::move(counts.send), batch_.type), as_sent(out),
                                 counts_as_sent(std::move(counts.receive), batch_.type));
}

/// Starts a message. Only the two ranks come here: one sends the tensor, the other one receives it.
void batch_collectives::start_message() {
    agreement const& agreed = unit_of(only());
    tensor_view const tensor = as_sent(io_of(only())->in);
    tensor_view const none{nullptr, 0, tensor.type, tensor.where};
    bool const sends = ranks_.rank() == agreed.what.root;
    int const peer = static_cast<int>(agreed.what.numbers.at(sends ? 1 : 0));
    operation_ = ranks_.sendrecv(label_, peer, sends ? tensor : none, sends ? none : tensor);
}

}  // namespace muster::detail
