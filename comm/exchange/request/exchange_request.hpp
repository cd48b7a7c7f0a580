// A request says what one rank wants done to a named tensor, or to a group of them. Ranks negotiate requests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/tensor/compress.hpp"
#include "comm/tensor/tensor.hpp"

namespace muster {

/// Up to eight extents, the first counting rows. A scalar has none. A plain value.
struct tensor_shape {
    static constexpr std::size_t most_dimensions = 8;

    std::array<std::int64_t, most_dimensions> extents{};
    std::uint8_t dimensions = 0;

    bool operator==(tensor_shape const&) const = default;

    std::span<std::int64_t const> view() const noexcept { return {extents.data(), dimensions}; }
    std::int64_t rows() const noexcept { return dimensions == 0 ? 1 : extents[0]; }
    /// Returns the elements of one row; 1 for at most one dimension.
    std::int64_t row_elements() const noexcept;
    std::int64_t elements() const noexcept { return rows() * row_elements(); }
};

/// Throws errc::usage on more than eight extents, a negative one, or more than 2^62 elements.
tensor_shape make_shape(std::span<std::int64_t const> extents);

/// Returns the shape of a vector.
tensor_shape flat_shape(std::size_t elements);

/// Returns "[64, 3, 7, 7]", "[]" for a scalar.
std::string to_string(tensor_shape const& shape);

enum class exchange_kind : std::uint8_t {
    allreduce,
    allgather,
    broadcast,
    reducescatter,
    alltoall,
    barrier,
    join,         ///< this rank has no more tensors: it takes part with zeros until all have joined
    include,      ///< make a process set
    leave,        ///< this rank's exchange ends
    prepare,      ///< a grouped allreduce that will be started again and again is checked
    give_up,      ///< a deadline has passed: the exchange ends on all ranks, for the reason in the name of its tensor
    open_device,  ///< some rank has tensors in device memory: all ranks prepare for them
    make_set,     ///< its members alone make a process set
    remove_set,   ///< a process set ends
    message,      ///< from one rank to another
};
inline constexpr int exchange_kinds = 15;
std::string_view to_string(exchange_kind kind) noexcept;

/// The first character of names that the exchange itself gives; messages do not show them.
inline constexpr char internal_name = '\x01';
inline constexpr std::string_view join_name = "\x01join";
inline constexpr std::string_view leave_name = "\x01leave";
inline constexpr std::string_view open_device_name = "\x01open device";
inline constexpr std::string_view give_up_name = "\x01give up";

/// One tensor of a request.
struct tensor_spec {
    std::string name;
    dtype type = dtype::f32;
    memory_kind where = memory_kind::host;
    tensor_shape shape;
    bool operator==(tensor_spec const&) const = default;
};

/// The unit of negotiation: one tensor, or all tensors of a grouped allreduce, which become ready together or not at all. It has
/// no process set, since every set negotiates by itself.
struct exchange_request {
    std::string name;
    exchange_kind kind = exchange_kind::allreduce;
    reduction how = reduction::sum;        ///< allreduce, reducescatter
    scaling scale{};                       ///< allreduce, reducescatter
    compression wire = compression::none;  ///< allreduce: of its f32 tensors
    bool error_feedback = false;           ///< … and whether what rounding loses is kept for the next time
    int root = 0;                          ///< broadcast; message: who sends; remove_set: the set
    std::vector<std::int64_t> numbers;     ///< alltoall: rows for each rank; include, give_up: ranks; others: parties_of()
    std::vector<tensor_spec> tensors;
    /// Each tensor's address on that rank, or empty: fused tensors get this order, in which they may lie gap-free.
    std::vector<std::uint64_t> places{};
    std::int64_t since_us = 0;  ///< when that rank submitted it, since the epoch (UTC); only set in announcements

    bool operator==(exchange_request const&) const = default;
};

/// Returns the ranks without which the request is not ready: the members of a set that is made or removed, the two ranks of a
/// message. Empty: all ranks.
std::span<std::int64_t const> parties_of(exchange_request const& what) noexcept;

/// Returns whether `now` repeats `before`, wherever it may lie in memory, so that a cached answer holds for it. This rank's
/// shapes and splits count, since the answer holds them.
bool is_repetition(exchange_request const& before, exchange_request const& now) noexcept;

/// A difference in what must be the same on all ranks, as two phrases to be attributed to their ranks ("shape [3, 4]", "shape [3,
/// 5]"); both empty if the two ranks agree. The first dimension of allgather and alltoall, and alltoall's splits, may differ.
struct disagreement {
    std::string mine;
    std::string theirs;
    explicit operator bool() const noexcept { return !mine.empty(); }
};
disagreement compare(exchange_request const& mine, exchange_request const& theirs);

/// Returns "allreduce of "grad.7"", "barrier", "message from rank 0 to rank 1 with tag 7".
std::string describe(exchange_kind kind, std::string_view name);

/// Returns the name without the mark of names that the exchange gave.
constexpr std::string_view shown_name(std::string_view name) noexcept {
    return !name.empty() && name.front() == internal_name ? name.substr(1) : name;
}

/// Returns the name in records and timelines: of the names that the exchange gives, people only read those of messages.
inline std::string_view recorded_name(exchange_request const& what) noexcept {
    return what.kind == exchange_kind::message ? shown_name(what.name) : std::string_view(what.name);
}

// An agreement says what the ranks will do next with their requests of one name, or why they cannot.

struct agreement {
    exchange_request what;  ///< from the lowest rank that announced it
    std::vector<std::int64_t>
        numbers;  ///< allgather: rows of each rank, for one tensor after the other; alltoall: rows from rank r to s at [r * ranks + s]
    std::string fault;          ///< not empty: an error on every rank
    std::vector<int> culprits;  ///< of the fault: the ranks that differ from the lowest, or that have left
    int last = -1;              ///< join: the rank that joined last
    bool whole = true;          ///< no rank had joined: may be cached
    bool operator==(agreement const&) const = default;
};

}  // namespace muster
