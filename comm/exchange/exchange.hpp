// An exchange runs collectives on named tensors, submitted from any thread in any order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "comm/backend/collective_backend.hpp"
#include "comm/exchange/exchange_handle.hpp"
#include "comm/exchange/observe/counters.hpp"
#include "comm/exchange/observe/flight_recorder.hpp"
#include "comm/exchange/request/exchange_options.hpp"
#include "comm/exchange/request/exchange_request.hpp"
#include "pmix/identity.hpp"

namespace muster {

namespace detail {
class pending_ptr;
}

/// The arguments of a collective other than its tensors.
struct exchange_call {
    scaling scale{};                      ///< allreduce, reducescatter
    std::optional<tensor_shape> shape{};  ///< of the input, if it is not a vector
    int set = 0;                          ///< a process set; 0 is all ranks
    /// allreduce of f32, sum or average: what its elements are sent as, if not what exchange_options::wire says; for any
    /// other it is refused (errc::usage).
    std::optional<compression> wire{};
    std::optional<bool> error_feedback{};  ///< with it; if not what exchange_options::error_feedback says
    /// Device memory: the stream (a CUstream or cudaStream_t of this rank's GPU; null is the default stream) on which the program
    /// works on the tensors. What it holds when they are submitted is waited for, on the device.
    void* stream = nullptr;
};

/// One tensor of a group.
struct named_tensor {
    std::string_view name;
    tensor_view in;
    tensor_view out;  ///< allreduce: the same memory as `in` for in place; others: without it the exchange gives memory
    std::optional<tensor_shape> shape{};
};

/// A group of ranks whose threads submit named tensors, each in its own order. A background thread owns the communicator,
/// agrees with the other ranks on what all of them have submitted, fuses small tensors and runs the collectives; results are
/// waited for by handle.
///
/// - **Names.** A tensor is reduced with those of the same name on the other ranks. A name must not be submitted again before
///   its request has ended (errc::usage). If types, shapes, operations, reductions, factors or roots differ, every rank
///   gets errc::peer_failed with the name, the ranks and both values; the exchange goes on.
/// - **Memory.** Tensors must stay valid and untouched until their request has ended; if it ended because ranks have failed,
///   until the process ends.
/// - **Waiting.** What is submitted is gathered for cycle_time, but not beyond the moment at which somebody waits; so a call
///   followed by wait() takes no longer for it. The background thread sleeps when there is nothing to do, and negotiates
///   with the other ranks ten times a second then.
/// - **Never submitted.** Where the deadline of a tensor passes that other ranks have not submitted, all ranks learn that: each
///   of their requests ends with the error (errc::timeout) that names the tensor and these ranks. Where a rank does not answer
///   any more, up to a second later.
/// - **Calls that never meet.** Where the one thread that submits waits on every rank (in wait(), or in turns), and none of what they
///   have submitted is on all of them, no rank can go on: all of it fails after a second, with errc::peer_failed and what each rank waits in
///   since when; the exchange goes on. Where several threads submit on a rank, the deadline tells it.
/// - **Failure.** Ranks that are dead, stopped or late beyond a deadline end the exchange: every request not finished ends with
///   the error that names them, and every further call throws it at once. What has ended well holds right results. Destruction
///   does not hang.
/// - **Join.** A rank that has joined takes part in everything with neutral elements (0 for sums; an average is still over all
///   ranks) and no rows, until all have joined.
/// - **Device memory.** Tensors there are negotiated and fused as others are; a second communicator, over nccl (or what
///   MUSTER_COMM_BACKEND names), is made on all ranks when any has submitted a first one, which blocks the exchange meanwhile.
///   Pack, collective and unpack follow each other on the device; a request has ended when the device is through, and streams can
///   wait for it before (exchange_handle::order). Memory that the exchange gives is device memory too. If no rank can work on
///   device memory such requests fail (errc::unavailable) and others go on; if only some cannot, the exchange fails. Adasum goes
///   through host memory. Each process set has a communicator of NCCL's: where sets share ranks, wait for the tensors of one
///   before those of another are submitted, since NCCL may otherwise wait without end when ranks start them in different orders
///   and a GPU has no room for all of them at once.
/// - **Compression.** With exchange_options::wire, or exchange_call::wire for one call, f32 tensors of sums and averages are sent
///   as f16 or bf16. Each rank rounds its own (times scale.before) as it is gathered, the ranks' are added as
///   communicator::allreduce adds f16 and bf16 (in f32, rounded once; in device memory as NCCL adds) and the result is scaled by
///   scale.after in f32 as it is handed out; all ranks get the same bits. On one rank nothing is rounded. With error feedback
///   what the first rounding loses
///   is kept by name and added to the next tensor of that name (compress()); the second, half a unit in the last place of the
///   result, is not made good. A tensor that comes with another number of elements begins anew. It costs 4 bytes an element for
///   as long as the exchange lives.
///
/// Thread safe, except for construction and destruction, which are collective.
class exchange {
  public:
    /// Collective. Starts the thread, which makes the communicator (and initialises MPI if that is its backend). Throws what
    /// communicator::create throws.
    explicit exchange(identity const& who, exchange_options const& options = {});

    /// Collective: waits, for at most the deadline but no longer than half a minute, for this rank's requests and for the other
    /// ranks to end theirs. A rank that unwinds an exception does not wait.
    ~exchange();

    exchange(exchange const&) = delete;
    exchange& operator=(exchange const&) = delete;

    int rank() const noexcept;
    int size() const noexcept;
    identity const& who() const noexcept;
    std::string const& backend() const noexcept;      ///< of the communicator for host memory
    std::string const& why_backend() const noexcept;  ///< see communicator::why_backend
    /// Of the communicator for device memory, once there is one; else "".
    std::string_view device_backend() const;

    /// out[i] = the ranks' in[i], reduced and scaled (see communicator::allreduce). In place if both are the same memory. Adasum
    /// (see adasum()) is done tensor by tensor, and the thread does nothing else meanwhile.
    exchange_handle allreduce(std::string_view name, tensor_view in, tensor_view out, reduction how,
                              exchange_call const& call = {});

    /// All of them or none: they are agreed on together, under the name of the group. Tensors of a group that share memory, of
    /// which one is written there, are refused (errc::usage).
    exchange_handle allreduce_group(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                                    exchange_call const& call = {});

    /// Checks a group once and for all, with the other ranks: blocks until every rank of the set has prepared it, and throws on
    /// all of them if they differ (errc::peer_failed, naming the tensor and both values). See prepared_group. The name must not
    /// be in flight.
    prepared_group prepare(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                           exchange_call const& call = {});

    /// out = the rows of all ranks, in their order; the number of rows may differ. Without `out` (null data) the exchange gives
    /// memory, see exchange_handle::result.
    exchange_handle allgather(std::string_view name, tensor_view in, tensor_view out = {}, exchange_call const& call = {});

    /// An allgather of each, all of them or none: they are agreed on together, under the name of the group. See
    /// exchange_handle::result_of and rows_of.
    exchange_handle allgather_group(std::string_view name, std::span<named_tensor const> tensors, exchange_call const& call = {});

    /// The root's tensor becomes everybody's. The root counts within the process set.
    exchange_handle broadcast(std::string_view name, tensor_view in, tensor_view out, int root, exchange_call const& call = {});

    /// out = this rank's share of the rows (share_of), reduced. Without `out` the exchange gives memory.
    exchange_handle reducescatter(std::string_view name, tensor_view in, tensor_view out, reduction how,
                                  exchange_call const& call = {});

    /// A reducescatter of each, as allgather_group.
    exchange_handle reducescatter_group(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                                        exchange_call const& call = {});

    /// Sends splits[r] rows to rank r; gets the rows that are meant for this rank, in the order of the ranks. No splits: equal
    /// parts. Without `out` the exchange gives memory.
    exchange_handle alltoall(std::string_view name, tensor_view in, std::span<std::int64_t const> splits, tensor_view out = {},
                             exchange_call const& call = {});

    /// Sends host memory to one other rank of the set, which receives it. Matched by the two ranks, the tag and the order of
    /// calls; the n-th with that tag is received by the n-th. Type and number of elements are the same on both (errc::peer_failed
    /// on both otherwise). No other rank needs to do anything, but its thread is asked: a small message takes a round of
    /// negotiation of the whole set, up to 100 ms where other ranks are idle. In a set of the two it takes as long as a first
    /// small allreduce. Ends when the message has been received.
    exchange_handle send(tensor_view what, int peer, int tag = 0, exchange_call const& call = {});
    exchange_handle receive(tensor_view into, int peer, int tag = 0, exchange_call const& call = {});

    /// Ends when every rank of the set has called it.
    exchange_handle barrier(int set = 0);

    /// This rank has no more tensors. Ends when all ranks of the set have joined; number() is the last that did.
    exchange_handle join(int set = 0);

    /// Memory that the exchange's collectives are fastest on (see communicator::allocate), for tensors that are reduced where
    /// they lie. Not collective. Throws what the exchange failed of if it has.
    comm_buffer allocate(std::size_t bytes);

    /// Makes a process set of these ranks (distinct). Every rank calls it with the same; blocks until they have. Returns its
    /// number, on ranks outside too, which cannot use it.
    int add_process_set(std::span<int const> ranks);
    /// The same, but called by its members alone, which give the same `name`: other ranks need not know of it, though their threads
    /// take part. Sets of one name whose first ranks differ are distinct; one that is made can be made again, and is another one.
    /// The number is the same on all ranks.
    int make_process_set(std::span<int const> ranks, std::string_view name);

    /// Ends a process set; its number is not given again. Collective over all ranks, or, where its members made it by
    /// make_process_set, over these; blocks until they have called it. Its requests must have ended (errc::usage if some are in
    /// flight here, or if there is no such set); what is submitted to it from now on is refused (errc::usage).
    void remove_process_set(int set);

    int rank_in(int set) const;  ///< -1: not a member
    int size_of_set(int set) const;

    /// Writes FOLDER/timeline-RANK.json from now on. Not collective. The clocks were compared when the exchange was made.
    void start_timeline(std::string const& folder, bool mark_cycles = false);
    /// The same into a file of that name, which is this rank's own. Throws errc::system.
    void start_timeline_file(std::string const& path, bool mark_cycles = false);
    void stop_timeline();

    counter_values count() const noexcept;

    /// The last operations, and what is waited for.
    flight_dump dump() const;

  private:
    exchange_handle submit(detail::pending_ptr const& what, exchange_call const& call = {});
    detail::pending_ptr group(exchange_kind kind, std::string_view name, std::span<named_tensor const> tensors, reduction how,
                              exchange_call const& call);
    exchange_handle message(tensor_view const& tensor, int peer, int tag, bool sends, exchange_call const& call);
    void check_ranks(std::span<int const> ranks) const;
    detail::pending_ptr parts(exchange_kind kind, std::string_view name, std::span<named_tensor const> tensors, reduction how,
                              exchange_call const& call) const;
    void check_name(exchange_kind kind, std::string_view name, int set) const;
    [[noreturn]] void refuse(exchange_kind kind, std::string_view name, std::string const& fault) const;

    std::shared_ptr<detail::exchange_core> core_;
};

}  // namespace muster
