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
    /// allreduce of f32, sum or average: the type in which elements are sent, if not the one of exchange_options::wire; any other
    /// collective refuses it (errc::usage).
    std::optional<compression> wire{};
    std::optional<bool> error_feedback{};  ///< … if not the one of exchange_options::error_feedback
    /// Device memory: the stream (a CUstream or cudaStream_t of this rank's GPU; null is the default stream) on which the program
    /// works on the tensors. The device waits for what it holds when they are submitted.
    void* stream = nullptr;
};

/// One tensor of a group.
struct named_tensor {
    std::string_view name;
    tensor_view in;
    tensor_view out;  ///< allreduce: the same memory as `in` for in place; others: if empty, the exchange gives memory
    std::optional<tensor_shape> shape{};
};

/// A group of ranks whose threads submit named tensors, each in its own order. A background thread owns the communicator, agrees
/// with the other ranks on what all of them have submitted, fuses small tensors and runs the collectives; handles wait for
/// results.
///
/// - **Names.** A tensor is reduced with those of the same name on the other ranks. A name must not be submitted again before
///   its request has ended (errc::usage). If types, shapes, operations, reductions, factors or roots differ, every rank
///   gets errc::peer_failed with the name, the ranks and both values; the exchange goes on.
/// - **Memory.** Tensors must stay valid and untouched until their request has ended; if it ended because ranks have failed,
///   until the process ends.
/// - **Waiting.** Submissions are gathered for cycle_time, but only until somebody waits; so a call followed by wait() takes no
///   longer for it. The background thread sleeps when there is nothing to do; it then negotiates with the other ranks ten times a
///   second.
/// - **Never submitted.** If the deadline of a tensor passes that other ranks have not submitted, all ranks learn of it: each of
///   their requests ends with the error (errc::timeout) that names the tensor and these ranks; up to a second later if a rank no
///   longer answers.
/// - **Calls that never meet.** If only one thread submits on each rank, and all of them wait (in wait(), or in turns) while none
///   of what they have submitted is on all ranks, no rank can go on: all of it fails after a second, with errc::peer_failed and
///   what each rank waits in since when; the exchange goes on. If a rank submits from several threads, only the deadline ends the
///   wait.
/// - **Failure.** Ranks that are dead, stopped or late beyond a deadline end the exchange: every unfinished request ends with the
///   error that names them, and every further call throws it at once. Requests that have ended well hold right results.
///   Destruction does not hang.
/// - **Join.** A rank that has joined takes part in everything with neutral elements (0 for sums; an average is still over all
///   ranks) and no rows, until all have joined.
/// - **Device memory.** Tensors there are negotiated and fused as others are; a second communicator, over nccl (or what
///   MUSTER_COMM_BACKEND names), is made on all ranks when any has submitted a first one, which blocks the exchange meanwhile.
///   Pack, collective and unpack follow each other on the device; a request ends when the device has finished it, and streams can
///   wait for it before (exchange_handle::order). Memory that the exchange gives is device memory too. If no rank can work on
///   device memory such requests fail (errc::unavailable) and others go on; if only some cannot, the exchange fails. Adasum goes
///   through host memory. Each process set has its own NCCL communicator: if sets share ranks, wait for the tensors of one before
///   you submit those of another, since NCCL may otherwise wait without end when ranks start them in different orders and a GPU
///   has no room for all of them at once.
/// - **Compression.** With exchange_options::wire, or exchange_call::wire for one call, f32 tensors of sums and averages are sent
///   as f16 or bf16. Each rank rounds its tensor (times scale.before) when it is gathered; the ranks' tensors are added as
///   communicator::allreduce adds f16 and bf16 (in f32, rounded once; in device memory as NCCL adds), and the result is scaled by
///   scale.after in f32 when it is handed out; all ranks get the same bits. One rank alone rounds nothing. With error feedback
///   the loss of the first rounding is kept by name and added to the next tensor of that name (compress()); the second one, half
///   a unit in the last place of the result, is lost. A tensor that comes with another number of elements starts again. Error
///   feedback costs 4 bytes an element for as long as the exchange lives.
///
/// Thread safe, except for construction and destruction, which are collective.
class exchange {
  public:
    /// Collective. Starts the thread, which makes the communicator (and initialises MPI if that is its backend). Throws what
    /// communicator::create throws.
    explicit exchange(identity const& who, exchange_options const& options = {});

    /// Collective: waits, for at most the deadline but no longer than half a minute, until this rank's requests have ended and
    /// the other ranks have ended theirs. A rank that unwinds an exception does not wait.
    ~exchange();

    exchange(exchange const&) = delete;
    exchange& operator=(exchange const&) = delete;

    int rank() const noexcept;
    int size() const noexcept;
    identity const& who() const noexcept;
    std::string const& backend() const noexcept;      ///< of the communicator for host memory
    std::string const& why_backend() const noexcept;  ///< see communicator::why_backend
    /// Returns that of the communicator for device memory, once there is one; else "".
    std::string_view device_backend() const;

    /// out[i] = the ranks' in[i], reduced and scaled (see communicator::allreduce). In place if both are the same memory. The
    /// thread does Adasum (see adasum()) tensor by tensor, and nothing else meanwhile.
    exchange_handle allreduce(std::string_view name, tensor_view in, tensor_view out, reduction how,
                              exchange_call const& call = {});

    /// Reduces all of them or none: the ranks agree on them together, under the name of the group. Throws errc::usage if tensors
    /// of the group share memory to which one of them is written.
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

    /// Gathers each of them, all or none: the ranks agree on them together, under the name of the group. See
    /// exchange_handle::result_of and rows_of.
    exchange_handle allgather_group(std::string_view name, std::span<named_tensor const> tensors, exchange_call const& call = {});

    /// Copies the root's tensor to all ranks. The root's number counts within the process set.
    exchange_handle broadcast(std::string_view name, tensor_view in, tensor_view out, int root, exchange_call const& call = {});

    /// out = this rank's share of the rows (share_of), reduced. Without `out` the exchange gives memory.
    exchange_handle reducescatter(std::string_view name, tensor_view in, tensor_view out, reduction how,
                                  exchange_call const& call = {});

    /// A reducescatter of each tensor; see allgather_group.
    exchange_handle reducescatter_group(std::string_view name, std::span<named_tensor const> tensors, reduction how,
                                        exchange_call const& call = {});

    /// Sends splits[r] rows to rank r; receives the rows for this rank, in the order of the ranks. Without splits the parts are
    /// equal. Without `out` the exchange gives memory.
    exchange_handle alltoall(std::string_view name, tensor_view in, std::span<std::int64_t const> splits, tensor_view out = {},
                             exchange_call const& call = {});

    /// Sends host memory to one other rank of the set, which receives it. The two ranks, the tag and the order of calls match:
    /// the n-th message with a tag goes to the n-th receive with it. Type and number of elements are the same on both
    /// (errc::peer_failed on both otherwise). No other rank needs to call anything, but its thread takes part: a small message
    /// takes a round of negotiation of the whole set, up to 100 ms if other ranks are idle. In a set of the two it takes as long
    /// as a first small allreduce. Ends when the message has been received.
    exchange_handle send(tensor_view what, int peer, int tag = 0, exchange_call const& call = {});
    exchange_handle receive(tensor_view into, int peer, int tag = 0, exchange_call const& call = {});

    /// Ends when every rank of the set has called it.
    exchange_handle barrier(int set = 0);

    /// Says that this rank has no more tensors. Ends when all ranks of the set have joined; number() is the last that did.
    exchange_handle join(int set = 0);

    /// Returns memory on which the exchange's collectives are fastest (see communicator::allocate), for tensors that are reduced
    /// in place. Not collective. Throws the exchange's failure if it has failed.
    comm_buffer allocate(std::size_t bytes);

    /// Makes a process set of these ranks (distinct). Every rank calls it with the same ranks; blocks until all have. Returns its
    /// number, also on ranks outside, which cannot use it.
    int add_process_set(std::span<int const> ranks);
    /// The same, but only the members call it, with the same `name`: other ranks need not know of it, though their threads take
    /// part. Sets of one name whose first ranks differ are distinct; a second call with the same arguments makes another set. The
    /// number is the same on all ranks.
    int make_process_set(std::span<int const> ranks, std::string_view name);

    /// Ends a process set; its number is not used again. Collective over all ranks, or, if its members made it by
    /// make_process_set, over these; blocks until they have called it. Its requests must have ended (errc::usage if some are in
    /// flight here, or if there is no such set); further submissions to it throw errc::usage.
    void remove_process_set(int set);

    int rank_in(int set) const;  ///< -1: not a member
    int size_of_set(int set) const;

    /// Writes FOLDER/timeline-RANK.json from now on. Not collective. The clocks were compared when the exchange was made.
    void start_timeline(std::string const& folder, bool mark_cycles = false);
    /// The same into a file of that name, different on each rank. Throws errc::system.
    void start_timeline_file(std::string const& path, bool mark_cycles = false);
    void stop_timeline();

    counter_values count() const noexcept;

    /// Returns the last operations, and those that are waited for.
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
