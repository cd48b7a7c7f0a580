// The collectives to measure: each one's elements, counts, nccl-tests' factors and bounds; and the plan that the options give.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/command/given_options.hpp"
#include "base/units.hpp"
#include "comm/backend/collective_backend.hpp"

namespace muster {

struct collective_case {
    collective::kind what = collective::kind::allreduce;
    dtype type = dtype::f32;
    reduction how = reduction::sum;  ///< of allreduce and reducescatter; else not used
    int root = 0;                    ///< of broadcast

    bool reduces() const noexcept { return what == collective::kind::allreduce || what == collective::kind::reducescatter; }
    /// broadcast works in place only, alltoall out of place only.
    bool has_place(bool in_place) const noexcept {
        return in_place ? what != collective::kind::alltoall : what != collective::kind::broadcast;
    }
    /// Elements of which every rank's part, in or out, is a `ranks`-th.
    bool parted() const noexcept { return what != collective::kind::allreduce && what != collective::kind::broadcast; }
    bool operator==(collective_case const&) const = default;
};

/// Return the words of nccl-tests' columns: "sum", "prod", "avg", …, "none" where nothing is reduced; the root's number, or "-1".
std::string redop_of(collective_case const& of);
std::string root_of(collective_case const& of);

/// "allreduce,broadcast" or "all"; "f32,bf16", "float" and so on as nccl-tests spells them too, or "all"; "sum,avg" or "all".
/// Throw errc::usage naming the option and what there is.
std::vector<collective::kind> parse_kinds(std::string_view text);
std::vector<dtype> parse_types(std::string_view text);
std::vector<reduction> parse_reductions(std::string_view text);

/// All combinations that mean something: what reduces nothing comes once for each type, and integers have no average.
std::vector<collective_case> cases_of(std::vector<collective::kind> const& kinds, std::vector<dtype> const& types,
                                      std::vector<reduction> const& reductions, int root);

/// `bytes` as nccl-tests counts them, the larger of a rank's input and output, made a multiple of what every rank can have a part
/// of, and not 0.
std::size_t fitting_bytes(collective_case const& of, std::size_t bytes, int ranks) noexcept;

/// nccl-tests' column: elements of the tensor, or, where ranks have parts, of a part.
std::size_t count_of(collective_case const& of, std::size_t bytes, int ranks) noexcept;

/// busbw / algbw (nccl-tests, doc/PERFORMANCE.md): 2 (n-1) / n for allreduce, 1 for broadcast, else (n-1) / n.
double bus_factor(collective::kind what, int ranks) noexcept;

/// Returns how many bytes must at least be moved between memory and cores of one node, for each byte of `bytes`; of sizes that caches do
/// not hold, every access counted. allreduce: each rank's input is read and the result written once, P+1, and the result read and
/// written by each rank, 2P. reducescatter: P+1. allgather, alltoall: each rank's output is read from where it is and written,
/// 2P. broadcast: that for all but the root, 2(P-1).
double bound_factor(collective::kind what, int ranks) noexcept;

/// The same in words: "S (3P+1)".
std::string_view bound_formula(collective::kind what) noexcept;

/// Returns why a peer ("openmpi", "mpich", "gloo", "raw-nccl") has no such collective, or "".
std::string peer_lacks(std::string_view peer, collective_case const& of);

// The plan of `muster-bench collectives`: reads the options into cases, sizes and contenders.

struct collectives_plan {
    std::vector<collective_case> cases;
    std::vector<std::size_t> sizes;              ///< bytes of a tensor; empty with gradients
    std::vector<std::size_t> gradient_elements;  ///< of each tensor
    std::string gradients;                       ///< the set's name and source
    std::vector<int> ranks;
    int repeats = 7;
    int nodes = 1;  ///< that the hierarchical backend's ranks pretend to be on
    std::vector<std::string> backends, peers;
    bool plain = true;      ///< muster's own in plain memory
    bool allocated = true;  ///< … in memory from communicator::allocate(), those that share it
    std::string muster, self, python, json, csv;
    duration time{};  ///< no further sizes of a table after this
    bool in_job = false;
    std::optional<std::pair<int, int>> pair;  ///< that sends messages; nothing: the first and the last rank
    bool messages = true;                     ///< between two ranks
};

/// Reads the options of collectives_row; `job_ranks`: of a job, where this is one of them. Throws errc::usage, errc::not_found where there is
/// no launcher.
collectives_plan read_collectives_plan(given_options const& given, std::optional<int> job_ranks);

/// The tensors that are measured, each set in bytes, as they fit the case and the ranks; sizes that become alike come once.
std::vector<std::vector<std::size_t>> tensor_sets(collectives_plan const& what, collective_case const& of, int ranks);

}  // namespace muster
