// A prepared group reduces the same tensors again and again, checked once.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/exchange/exchange_handle.hpp"

namespace muster {

namespace detail {
struct prepared;
}

/// Made by exchange::prepare. What there is to check has been checked and agreed on with the other ranks, so that start() costs
/// no more than a request of one tensor, whatever their number; beyond it there are the copies of what does not lie gap-free, and
/// the collective. Tensors that lie gap-free, inputs and outputs, are reduced where they lie.
///
/// The memory of all tensors must stay valid until the last start() has ended; freeing it earlier is the caller's fault and is
/// not noticed. Between its end and the next start() it may be read and written.
///
/// Owner; move-only. Destroying it is not collective and does not end what was started. May outlive the exchange, but not start.
class prepared_group {
  public:
    prepared_group() noexcept;  ///< empty: start() throws errc::usage
    prepared_group(prepared_group&& other) noexcept;
    prepared_group& operator=(prepared_group&& other) noexcept;
    prepared_group(prepared_group const&) = delete;
    prepared_group& operator=(prepared_group const&) = delete;
    ~prepared_group();

    /// Reduces all of them, as allreduce_group under the group's name would; `stream` as exchange_call::stream. Throws
    /// errc::usage if that name is in flight, what the exchange failed of if it has failed. Any thread.
    exchange_handle start(void* stream = nullptr);

    std::string const& name() const;
    std::size_t tensors() const noexcept;
    std::size_t bytes() const noexcept;  ///< of all inputs

  private:
    friend class exchange;
    prepared_group(std::shared_ptr<detail::exchange_core> core, std::unique_ptr<detail::prepared const> what) noexcept;

    std::shared_ptr<detail::exchange_core> core_;
    std::unique_ptr<detail::prepared const> what_;
};

}  // namespace muster
