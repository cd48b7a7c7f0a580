// A request tells what one rank wants done to a named tensor, or to a group of them: the unit of negotiation.
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
    /// Elements of one row; 1 where there is at most one dimension.
    std::int64_t row_elements() const noexcept;
    std::int64_t elements() const noexcept { return rows() * row_elements(); }
};

/// Throws errc::usage on more than eight extents, a negative one, or more elements than 2^62.
tensor_shape make_shape(std::span<std::int64_t const> extents);

/// A vector of so many elements.
tensor_shape flat_shape(std::size_t elements);

/// "[64, 3, 7, 7]", "[]" for a scalar.
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
    prepare,      ///< a grouped allreduce that is to be started again and again is checked
    give_up,      ///< a deadline has passed: the exchange ends on all ranks, for the reason that the name of its tensor tells
    open_device,  ///< some rank has tensors in device memory: all of them prepare for such
    make_set,     ///< its members alone make a process set
    remove_set,   ///< a process set ends
    message,      ///< from one rank to another
};
inline constexpr int exchange_kinds = 15;
inline constexpr exchange_kind last_exchange_kind = exchange_kind::message;
std::string_view to_string(exchange_kind kind) noexcept;

/// Begins the names that the exchange itself gives; they are not shown.
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

/// A unit of negotiation. One tensor, or, for a grouped allreduce, all of them: they become ready together or not at all.
/// The process set is not part of it: every set negotiates by itself.
struct exchange_request {
    std::string name;
    exchange_kind kind = exchange_kind::allreduce;
    reduction how = reduction::sum;        ///< allreduce, reducescatter
    scaling scale{};                       ///< allreduce, reducescatter
    compression wire = compression::none;  ///< allreduce: of its f32 tensors
    bool error_feedback = false;           ///< with it: what rounding loses is kept for the next time
    int root = 0;                          ///< broadcast; message: who sends; remove_set: the set
    std::vector<std::int64_t> numbers;     ///< alltoall: rows for each rank; include, give_up: ranks; others: parties_of()
    std::vector<tensor_spec> tensors;
    /// Where each tensor lies on that rank, or empty: fused tensors are put into this order, in which they may lie gap-free.
    std::vector<std::uint64_t> places{};
    std::int64_t since_us = 0;  ///< when that rank submitted it, since the epoch (UTC); of what is announced

    bool operator==(exchange_request const&) const = default;
};

/// The ranks without which the request is not ready, where it is not the matter of all: the members of a set that is made or
/// removed, the two ranks of a message. Empty: all.
std::span<std::int64_t const> parties_of(exchange_request const& what) noexcept;

/// Whether a repetition of `before` is `now`, wherever it may lie in memory: what a cached answer may be used for. Own shapes and
/// splits count, since the answer holds them.
bool is_repetition(exchange_request const& before, exchange_request const& now) noexcept;

/// What must be the same on all ranks and is not, as two phrases to be attributed to their ranks ("shape [3, 4]", "shape [3,
/// 5]"); both empty if the two ranks agree. The first dimension of allgather and alltoall, and alltoall's splits, may differ.
struct disagreement {
    std::string mine;
    std::string theirs;
    explicit operator bool() const noexcept { return !mine.empty(); }
};
disagreement compare(exchange_request const& mine, exchange_request const& theirs);

/// "allreduce of "grad.7"", "barrier", "message from rank 0 to rank 1 with tag 7".
std::string describe(exchange_kind kind, std::string_view name);

/// The name without what tells that the exchange gave it.
constexpr std::string_view shown_name(std::string_view name) noexcept {
    return !name.empty() && name.front() == internal_name ? name.substr(1) : name;
}

/// What records and timelines call it: of the names that the exchange gives only those of messages are to be read.
inline std::string_view recorded_name(exchange_request const& what) noexcept {
    return what.kind == exchange_kind::message ? shown_name(what.name) : std::string_view(what.name);
}

// An agreement: what the ranks will do next with their requests of one name, or why they cannot.

struct agreement {
    exchange_request what;  ///< as the lowest rank that announced it put it
    std::vector<std::int64_t>
        numbers;  ///< allgather: rows of each rank, for one tensor after the other; alltoall: rows from rank r to s at [r * ranks + s]
    std::string fault;          ///< not empty: an error on every rank
    std::vector<int> culprits;  ///< of the fault: the ranks that differ from the lowest, or that have left
    int last = -1;              ///< join: the rank that joined last
    bool whole = true;          ///< no rank was joined: may be cached
    bool operator==(agreement const&) const = default;
};

}  // namespace muster
