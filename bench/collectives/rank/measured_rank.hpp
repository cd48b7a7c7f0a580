// The measurement of collectives on one rank: fills tensors, times the calls and checks every element of the results.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/collectives/collectives_values.hpp"
#include "comm/communicator.hpp"

namespace muster {

/// One way to the other ranks: a backend, or NCCL alone.
struct way_to_ranks {
    int rank = 0;
    int ranks = 1;
    std::string version;
    std::function<void(collective_case const&, tensor_view, tensor_view)> run;  ///< and waits
    std::function<void()> barrier;
    cuda::device const* gpu = nullptr;                   ///< where the tensors are, if not in host memory
    std::function<comm_buffer(std::size_t)> allocate{};  ///< where they are to lie, if not in plain memory
};

/// A communicator as such a way; `version` and `allocate` are left empty. It must live longer.
way_to_ranks way_over(communicator& all);

class measured_rank {
  public:
    /// `by` must live longer.
    explicit measured_rank(way_to_ranks const& by) : by_(by) {}

    /// Sets the case for all tensors that are made from now on.
    void choose(collective_case const& of, value_rule const& rule);

    /// Makes `sets` times tensors of so many bytes each. Throws std::bad_alloc, cuda_error.
    void make(std::size_t sets, std::span<std::size_t const> bytes);

    struct outcome {
        double us = 0;          ///< for a set, after all ranks were ready
        std::size_t wrong = 0;  ///< elements of the results
    };
    /// Fills all tensors by `seed`, runs the collective on each, and checks. Collective.
    outcome run(unsigned seed, bool in_place);

  private:
    /// One tensor: where it comes from and goes to. In place both are in `in` or both in `out`.
    struct measured_tensor {
        collectives_memory in, out;
        tensor_view from, to;
    };
    std::size_t part_of(std::size_t bytes) const { return bytes / static_cast<std::size_t>(by_.ranks); }
    std::size_t elements(std::size_t bytes) const { return bytes / size_of(of_.type); }
    collectives_memory memory_of(std::size_t bytes);
    void fill(measured_tensor& each, sample_place at, bool in_place);
    std::size_t check(measured_tensor const& each, sample_place at, bool in_place) const;

    way_to_ranks const& by_;
    collective_case of_;
    value_rule rule_;
    std::size_t sets_ = 0;
    comm_buffer pool_;
    std::size_t pool_used_ = 0;
    std::vector<measured_tensor> tensors_;
};

}  // namespace muster
