#include "comm/backend/memory/process_token.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace muster::shm {

namespace {

constexpr std::size_t page_bytes = 4096;

/// It has a page to itself, which the kernel zeroes in a forked child: the state there is undecided again.
struct held_token {
    enum class standing : std::uint32_t { undecided, being_made, made, failed };
    process_token held;
    std::atomic<standing> state;
};

held_token* map_page() noexcept {
    void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return nullptr;
#ifdef MADV_WIPEONFORK
    if (::madvise(page, page_bytes, MADV_WIPEONFORK) == 0) return new (page) held_token{};
#endif
    ::munmap(page, page_bytes);
    return nullptr;
}

void make(held_token& token) noexcept {
    process_token bits;
    bool const random = ::getrandom(&bits, sizeof bits, 0) == static_cast<ssize_t>(sizeof bits) && bits;
    token.held = as_held(bits);
    token.state.store(random ? held_token::standing::made : held_token::standing::failed, std::memory_order_release);
}

/// Returns null if there is no token.
held_token const* own() noexcept {
    using standing = held_token::standing;
    static held_token* const token = map_page();
    if (token == nullptr) return nullptr;
    auto state = token->state.load(std::memory_order_acquire);
    if (state == standing::undecided && token->state.compare_exchange_strong(state, standing::being_made)) make(*token);
    while ((state = token->state.load(std::memory_order_acquire)) == standing::being_made) {
    }
    return state == standing::made ? token : nullptr;
}

}  // namespace

process_token own_token() noexcept {
    auto const* const token = own();
    return token == nullptr ? process_token{} : as_held(token->held);
}

std::uint64_t own_token_address() noexcept {
    auto const* const token = own();
    return token == nullptr ? 0 : reinterpret_cast<std::uintptr_t>(&token->held);
}

}  // namespace muster::shm
