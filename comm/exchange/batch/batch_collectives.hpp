// Collectives of a batch, done alike for tensors in host and in device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/exchange/batch/exchange_context.hpp"
#include "comm/exchange/batch/plan_batches.hpp"
#include "comm/exchange/request/exchange_request.hpp"

namespace muster::detail {

/// The parts of a batch. All of them outlive it.
struct batch_parts {
    int set = 0;
    communicator& ranks;  ///< for the kind of memory that the tensors lie in
    exchange_context& shared;
    fused_batch const& batch;
    std::span<std::shared_ptr<agreement const> const> agreed;
    std::span<pending_ptr const> units;  ///< units[i] belongs to agreed[i]; null if this rank has joined
};

/// Starts a batch's collective. host_batch and device_batch implement the protected virtual functions for their memory. A rank
/// that has joined takes part with neutral elements.
class batch_collectives {
  public:
    std::string const& label() const noexcept { return label_; }
    operation& under_way() noexcept { return operation_; }

  protected:
    explicit batch_collectives(batch_parts const& with);
    ~batch_collectives() = default;
    batch_collectives(batch_collectives const&) = delete;
    batch_collectives& operator=(batch_collectives const&) = delete;

    // These return scratch memory of at least `bytes`: the first for inputs, the second for outputs that this rank does not want.
    virtual std::byte* first_scratch(std::size_t bytes) = 0;
    virtual std::byte* second_scratch(std::size_t bytes) = 0;
    /// Returns memory that belongs to the request, or to `part` of it if that is given.
    virtual std::byte* give_memory(pending_request& unit, group_result* part, std::size_t bytes) = 0;
    virtual void copy(void* to, void const* from, std::size_t bytes) = 0;
    /// Writes neutral elements.
    virtual void fill(tensor_view const& view) = 0;
    virtual void start_allreduce() = 0;
    /// Starts a reducescatter whose shares of rows are not the communicator's shares of elements; `mine` counts elements.
    virtual void start_uneven_reducescatter(tensor_view const& in, tensor_view const& out, element_range const& mine) = 0;

    void start_collective();

    agreement const& unit_of(fusion_item const& item) const { return *agreed_[item.unit]; }
    tensor_spec const& spec_of(fusion_item const& item) const { return unit_of(item).what.tensors.at(item.tensor); }
    std::size_t count_of(fusion_item const& item) const { return static_cast<std::size_t>(spec_of(item).shape.elements()); }
    /// Returns null if this rank has joined.
    tensor_io const* io_of(fusion_item const& item) const;
    bool is_compressed() const noexcept { return batch_.wire != compression::none && ranks_.size() > 1; }
    /// Returns the type of elements as ranks send them.
    dtype sent_type() const noexcept;

    int set_;
    communicator& ranks_;
    exchange_context& shared_;
    fused_batch const& batch_;
    std::span<std::shared_ptr<agreement const> const> agreed_;
    std::span<pending_ptr const> units_;
    operation operation_;
    std::string label_;
    exchange_clock::time_point begin_;

  private:
    void start_broadcast();
    void start_allgather();
    void start_reducescatter();
    void start_alltoall();
    void start_message();
    fusion_item const& only() const { return batch_.items.front(); }
    void* own_output(pending_request& unit, std::size_t count) const;
    std::size_t row_elements() const { return static_cast<std::size_t>(spec_of(only()).shape.row_elements()); }
    pending_request* single() const { return units_[only().unit].get(); }
    tensor_view nothing() const noexcept { return {nullptr, 0, batch_.type, batch_.where}; }
    tensor_view single_input();
    tensor_view output(std::size_t count, std::vector<std::int64_t> rows);
};

}  // namespace muster::detail
