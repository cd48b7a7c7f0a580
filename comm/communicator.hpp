// Collectives over a group of ranks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "comm/backend/collective_backend.hpp"
#include "comm/backend/comm_options.hpp"
#include "comm/membership/next_world.hpp"
#include "comm/operation.hpp"
#include "comm/tensor/tensor.hpp"
#include "pmix/identity.hpp"

namespace muster {

/// Move-only owner of a group of ranks. Every collective is asynchronous: it starts, returns an operation, and makes progress
/// within calls on this communicator or its operations. Every rank starts the same collectives in the same order; they may be
/// waited for in any order.
///
/// A name stands for the tensor in messages; "" is allowed. Arguments are checked on the rank that gives them, before anything is
/// sent: comm_error (errc::usage) names the tensor, the rank, the host and the values. Tensors of one collective have the same
/// type on all ranks.
///
/// If a rank is dead, stopped or late, the ranks that waited for it throw a comm_error that names it (comm_error::culprits());
/// the communicator has then failed, and every further call on it throws the first failure again.
///
/// Not thread safe: one call at a time, and with an MPI of level FUNNELED or SINGLE only from MPI's main thread.
/// Destruction is collective, except on a rank that unwinds an exception: it leaves MPI unfinalised, so as not to hang in a
/// barrier that no other rank enters and so that the launcher sees it fail.
class communicator {
  public:
    /// Collective over who.world_size ranks. Selects a backend: `self` for one rank, `hierarchical` for several ranks on each of
    /// several nodes, `shm` if all are on one, else `mpi`; `nccl` for device memory; or what options.backend names. Programs that
    /// need native() or several ranks' MPI ask for mpi by name. Initialises MPI if necessary (then the last communicator
    /// finalises it, after which no other can be made), and uses its own MPI traffic, apart from the program's. Throws
    /// errc::singleton if MPI's world has another size than the identity's, errc::peer_failed on all ranks if their identities
    /// contradict each other, errc::timeout if ranks do not come within options.deadline, mpi_error.
    static communicator create(identity const& who, comm_options const& options = {});

    /// In an elastic run (`muster run --min-np N`), leaves the world of `left`, which may have failed or be empty, and makes that of the next generation, which
    /// options.loss watches; tries again if ranks are lost meanwhile. Collective over the ranks that are left; link.now() gives this rank's place. Returns an
    /// empty one if this rank has no part in it and should end. Throws what create() and member_link::reform() throw.
    static communicator reform(communicator left, member_link& link, member_standing const& standing, comm_options options = {});

    communicator(communicator&&) noexcept = default;
    communicator& operator=(communicator&&) noexcept = default;
    communicator(communicator const&) = delete;
    communicator& operator=(communicator const&) = delete;
    ~communicator() = default;

    /// Returns whether this rank belongs to it. If not (see include()), rank() is -1, size() is 0, and any other call is an error
    /// (errc::usage).
    explicit operator bool() const noexcept { return static_cast<bool>(state_); }

    int rank() const noexcept;
    int size() const noexcept;
    identity const& who() const;
    std::string_view backend() const noexcept;  ///< the name of its row: "self", "mpi", …
    /// Says, for people, why this backend was chosen and not those before it in the table. A process set has the reason of the
    /// whole.
    std::string const& why_backend() const;
    /// Says, for people, what the backend measured of the machine when the ranks met, and what it does about it, such as how far the processors are apart (shm). Each
    /// rank has its own; may be empty.
    std::string about() const;
    std::string const& host_of(int rank) const;
    comm_options const& options() const;

    /// out[i] = in[i] of all ranks, reduced and scaled (see `scaling`). Same count, reduction and factors on all ranks. `in` and
    /// `out` are the same memory (in place) or do not overlap. All ranks get bitwise the same result. Over mpi, in worlds of up
    /// to comm_options::direct_ranks ranks the elements are combined in the order of the ranks, f16 and bf16 in f32 and rounded
    /// once, and ranks whose arguments differ get an error (errc::peer_failed) before anything is written; a rank that gives no
    /// elements at all is noticed at the deadline, or when it starts another small allreduce. In larger worlds MPI's own
    /// algorithm decides the order, f16 and bf16 are rounded at each of its steps, and arguments that differ are undefined.
    operation allreduce(std::string_view name, tensor_view in, tensor_view out, reduction how, scaling const& scale = {});
    operation allreduce(std::string_view name, tensor_view in_place, reduction how, scaling const& scale = {}) {
        return allreduce(name, in_place, in_place, how, scale);
    }

    /// out = this rank's share (share_of) of the ranks' `in`, reduced and scaled. Same count, reduction and factors on all ranks;
    /// out.count is the share's. `out` may be the share's place within `in`, whose other parts are only read; otherwise they do
    /// not overlap. Elements are combined in the same order as by allreduce.
    operation reducescatter(std::string_view name, tensor_view in, tensor_view out, reduction how, scaling const& scale = {});

    /// Copies the root's tensor into every rank's. Same count on all ranks.
    operation broadcast(std::string_view name, tensor_view inout, int root);

    /// out = the ranks' `in`, one after the other; out.count == in.count * size(). Same count on all ranks. `in` may be this
    /// rank's place within `out`, else they do not overlap.
    operation allgather(std::string_view name, tensor_view in, tensor_view out);

    /// The same with counts[r] elements from rank r, out.count being their sum. All ranks give the same counts.
    operation allgather(std::string_view name, tensor_view in, tensor_view out, std::span<std::size_t const> counts);

    /// `in` holds send_counts[r] elements for rank r, one rank after the other; `out` gets receive_counts[r] from rank r, in the
    /// same way. What r sends to s is what s receives from r. No overlap.
    operation alltoall(std::string_view name, tensor_view in, std::span<std::size_t const> send_counts, tensor_view out,
                       std::span<std::size_t const> receive_counts);

    /// Sends this rank's `in` into `out` of `peer` and the other way round; the two counts may differ. Collective over these two
    /// ranks only, in the order of all that both do. No overlap. With itself a rank copies.
    operation sendrecv(std::string_view name, int peer, tensor_view in, tensor_view out);

    /// Finishes when every rank has started it.
    operation barrier();

    /// Returns the ranks of a process set as a separate communicator, numbered in the order of `ranks` (distinct; the same on all
    /// ranks, else errc::peer_failed on all). Collective over all ranks of this communicator, and blocking; ranks outside the set
    /// get an empty one. It has this one's options and deadline, and stays valid beyond this one.
    communicator include(std::span<int const> ranks);

    /// Returns a communicator over the same ranks for tensors in device memory: by nccl, or by the backend that `options` names.
    /// The ranks meet over this one, which must reach host memory; so it needs no PMIx, and serves process sets. Collective;
    /// blocks for at most options.deadline. It and its host names stay valid beyond this one. Throws what making the backend
    /// throws (nccl: what one rank lacks, on all); this communicator then still works.
    communicator for_device(comm_options options);

    /// Returns `bytes` (at least 1) of zeroed host memory, on which collectives of this process are fastest: over shm the other
    /// ranks of the node read and write it in place, while the kernel copies other memory. Use it for what lives long and is
    /// reduced often, such as the gradients of a network, in few large pieces: each takes a file descriptor, and its first
    /// collective maps it. Ranks need not do the same. Not collective; thread safe, also during other calls. Throws errc::system,
    /// std::bad_alloc.
    comm_buffer allocate(std::size_t bytes);

    /// Device memory: sets the `stream` (a CUstream or cudaStream_t of the communicator's device; null is the default stream) on
    /// which the program makes and uses its tensors. Collectives started from now on wait, on the device, for what the stream
    /// holds when they start. See also operation::order.
    void use_stream(void* stream);

    /// Moves all collectives under way forward, without waiting. Cheap (below a microsecond if there is nothing to do).
    void progress();

    /// Waits for all ranks in a barrier, within the deadline, then ends this communicator as its destructor does; it is empty
    /// afterwards. The destructor can only log what goes wrong at the end; this throws comm_error naming the ranks that do not
    /// come, and the communicator has then failed. Collective.
    void close();

    /// Returns a pointer to the MPI_Comm of backend mpi or hierarchical (`*static_cast<MPI_Comm const*>(c.native())`), else null.
    /// For libraries that duplicate it at once, as HDF5 does; valid as long as this communicator.
    void const* native() const noexcept;

  private:
    explicit communicator(detail::state_owner state) noexcept : state_(std::move(state)) {}
    detail::communicator_state& state() const;
    void agree_on(std::span<int const> ranks);
    operation start(std::string_view name, collective description);

    detail::state_owner state_;  ///< shared with operations under way; null on ranks outside
};

}  // namespace muster
