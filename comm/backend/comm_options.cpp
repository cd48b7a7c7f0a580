#include "comm/backend/comm_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/backend/comm_error.hpp"

namespace muster {

void peer_loss::tell(std::string_view why, std::vector<int> const& ranks) {
    std::scoped_lock const lock(guard_);
    for (int const rank : ranks)
        if (auto const at = std::lower_bound(ranks_.begin(), ranks_.end(), rank); at == ranks_.end() || *at != rank)
            ranks_.insert(at, rank);
    if (is_told()) return;
    why_ = why;
    told_.store(true, std::memory_order_release);
    if (call_) call_();
}

void peer_loss::throw_if_told(std::string_view speaker) const {
    if (!is_told()) return;
    std::scoped_lock const lock(guard_);
    throw comm_error(errc::peer_failed, fmt::format("{} {}: {}", speaker, lost_rank_words, why_), ranks_);
}

void peer_loss::when_told(std::function<void()> call) {
    std::scoped_lock const lock(guard_);
    call_ = std::move(call);
    if (call_ && is_told()) call_();
}

}  // namespace muster
