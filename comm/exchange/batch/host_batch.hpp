// A batch on its way through a communicator.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/batch/batch_layout.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/batch/plan_batches.hpp"

namespace muster::detail {

/// Memory that grows and is kept: such as the communicator's collectives are fastest on.
class scratch {
  public:
    explicit scratch(communicator& of) noexcept : of_(of) {}
    std::byte* get(std::size_t bytes);
    /// Others may still write to it: it is given up for good.
    void leak() noexcept;

  private:
    communicator& of_;
    comm_buffer memory_;
};

/// What a run is given: all of it outlives the run.
struct run_parts {
    int set = 0;
    communicator& ranks;
    context& shared;
    scratch& first;
    scratch& second;
};

/// Packs, starts the collective, unpacks. `units[i]` belongs to `agreed[i]` and is null where this rank has joined: it then takes
/// part with neutral elements. `layout` is that of the batch, if it is an allreduce.
class batch_run {
  public:
    batch_run(run_parts const& with, fused_batch const& batch, batch_layout& layout,
              std::span<std::shared_ptr<agreement const> const> agreed, std::span<pending_ptr const> units);

    void start();
    /// True once everything is where it belongs. Throws what the communicator throws.
    bool advance();

    /// The ranks have failed, and others may still write to memory that this run gave: it is given up for good.
    void leak() noexcept;

    std::string const& label() const noexcept { return label_; }
    operation& under_way() noexcept { return operation_; }

  private:
    agreement const& unit_of(fusion_item const& item) const { return *agreed_[item.unit]; }
    tensor_spec const& spec_of(fusion_item const& item) const { return unit_of(item).what.tensors.at(item.tensor); }
    std::size_t bytes_of(fusion_item const& item) const;
    tensor_io const* io_of(fusion_item const& item) const;
    pending* single() const { return units_[batch_.items.front().unit].get(); }

    bool is_compressed() const noexcept { return batch_.wire != compression::none && ranks_.size() > 1; }
    void find_residuals();
    void pack();
    void unpack();
    void start_allreduce();
    void start_adasum(std::byte const* in, std::byte* out, std::size_t count);
    void start_broadcast();
    void start_allgather();
    void start_reducescatter();
    void start_alltoall();
    tensor_view single_input(scratch& stand_in);
    tensor_view output(std::size_t count, std::vector<std::int64_t> rows);
    void combine_pieces();

    int set_;
    communicator& ranks_;
    context& shared_;
    scratch& first_;
    scratch& second_;
    fused_batch const& batch_;
    batch_layout& layout_;
    std::span<std::shared_ptr<agreement const> const> agreed_;
    std::span<pending_ptr const> units_;
    operation operation_;
    std::string label_;
    std::byte* packed_ = nullptr;  ///< the fusion buffer, if there is one
    bool unpacks_ = false;         ///< results are in it
    tensor_view pieces_;           ///< reducescatter of rows that elements do not divide: what came from each rank
    std::unique_ptr<std::byte[]> pieces_memory_;
    tensor_view share_;
    exchange_clock::time_point begin_;
};

/// Elements that change nothing: 0 for a sum, 1 for a product, the largest for a minimum, …
void fill_neutral(dtype type, exchange_reduction how, void* to, std::size_t count);

}  // namespace muster::detail
