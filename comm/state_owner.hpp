// The shared owner of a communicator's state. Counts owners without atomic operations.
#pragma once

#include <cstddef>
#include <utility>

namespace muster::detail {

struct communicator_state;

/// Like std::shared_ptr, for a state that one thread uses at a time: right after a message was written to memory that another
/// process reads, an atomic operation waits for that memory, which takes as long as the message itself.
class state_owner {
  public:
    state_owner() noexcept = default;
    explicit state_owner(communicator_state* state) noexcept : state_(state) { add(); }
    state_owner(state_owner const& other) noexcept : state_(other.state_) { add(); }
    state_owner(state_owner&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    state_owner& operator=(state_owner other) noexcept {
        std::swap(state_, other.state_);
        return *this;
    }
    ~state_owner() {
        if (state_ != nullptr) drop();
    }

    void reset() noexcept {
        if (state_ != nullptr) drop();
        state_ = nullptr;
    }
    communicator_state& operator*() const noexcept { return *state_; }
    communicator_state* operator->() const noexcept { return state_; }
    explicit operator bool() const noexcept { return state_ != nullptr; }

  private:
    void add() noexcept;
    void drop() noexcept;  ///< deletes the state with its last owner

    communicator_state* state_ = nullptr;
};

}  // namespace muster::detail
