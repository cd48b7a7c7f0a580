// A table of the objects that C knows by number: one that was freed is known without a look at freed memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace muster::c_api {

/// Owns objects of a type that C knows by pointers to an incomplete one. Such a pointer holds the object's place and how often that place was taken; it is
/// never followed. Thread safe, except that an object must not be freed while another thread uses it. Places are given back with the table alone.
template <typename T>
class handle_table {
  public:
    handle_table() = default;
    handle_table(handle_table const&) = delete;
    handle_table& operator=(handle_table const&) = delete;
    /// Destroys what was not freed.
    ~handle_table() {
        for (std::size_t made = 0; made < blocks_made_; ++made) {
            std::unique_ptr<slot[]> const block(blocks_[made].load());
            for (std::size_t i = 0; i < per_block; ++i)
                if (block[i].turn.load() % 2 == 1) std::launder(reinterpret_cast<T*>(block[i].storage))->~T();
        }
    }

    /// Takes an object in; throws std::bad_alloc, also beyond `most` of them.
    template <typename... Args>
    T* add(Args&&... args) {
        std::scoped_lock const guard(lock_);
        if (free_.empty()) grow();
        std::size_t const at = free_.back();
        slot& in = at_place(at);
        ::new (in.storage) T{std::forward<Args>(args)...};
        free_.pop_back();
        auto const turn = in.turn.load(std::memory_order_relaxed) + 1;  // odd: taken
        in.turn.store(turn, std::memory_order_release);
        return reinterpret_cast<T*>((std::uintptr_t{turn} << 32) | (at + 1));
    }

    /// Null for what was never given out, and for what was freed.
    T* find(T const* number) const noexcept {
        auto const bits = reinterpret_cast<std::uintptr_t>(number);
        std::size_t const at = (bits & 0xffffffff) - 1;
        if (at >= most) return nullptr;
        slot* const block = blocks_[at / per_block].load(std::memory_order_acquire);
        if (block == nullptr) return nullptr;
        slot& in = block[at % per_block];
        auto const turn = in.turn.load(std::memory_order_acquire);
        return turn % 2 == 1 && turn == bits >> 32 ? std::launder(reinterpret_cast<T*>(in.storage)) : nullptr;
    }

    /// Destroys the object, which find() has found, without the table being locked; its number is no one's then.
    void remove(T const* number) noexcept {
        T* const object = find(number);
        std::size_t const at = (reinterpret_cast<std::uintptr_t>(number) & 0xffffffff) - 1;
        at_place(at).turn.fetch_add(1, std::memory_order_acq_rel);
        object->~T();
        std::scoped_lock const guard(lock_);
        free_.push_back(at);  // room was made in grow()
    }

    static constexpr std::size_t most = 1 << 20;

  private:
    static constexpr std::size_t per_block = 256;
    struct slot {
        std::atomic<std::uint32_t> turn{0};
        alignas(T) std::byte storage[sizeof(T)];
    };

    slot& at_place(std::size_t at) const noexcept {
        return blocks_[at / per_block].load(std::memory_order_acquire)[at % per_block];
    }

    void grow() {
        if (blocks_made_ == blocks_.size()) throw std::bad_alloc();
        free_.reserve((blocks_made_ + 1) * per_block);
        auto block = std::make_unique<slot[]>(per_block);
        for (std::size_t i = per_block; i-- > 0;) free_.push_back(blocks_made_ * per_block + i);
        blocks_[blocks_made_++].store(block.release(), std::memory_order_release);
    }

    std::mutex lock_;
    std::array<std::atomic<slot*>, most / per_block> blocks_{};
    std::size_t blocks_made_ = 0;
    std::vector<std::size_t> free_;
};

}  // namespace muster::c_api
