#include "comm/exchange/batch/batch_layout.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace muster::detail {

namespace {

bool overlap(std::byte const* a, std::byte const* b, std::size_t bytes) {
    return a < b + bytes && b < a + bytes;
}

/// Memory that has no gaps for as long as each piece begins where the one before ends.
template <typename Byte>
class gap_free_memory {
  public:
    void add(Byte* at, std::size_t bytes) {
        if (first_ == nullptr) first_ = next_ = at;
        broken_ = broken_ || at == nullptr || at != next_;
        next_ = at + bytes;
    }
    Byte* whole() const { return broken_ ? nullptr : first_; }

  private:
    Byte* first_ = nullptr;
    Byte* next_ = nullptr;
    bool broken_ = false;
};

}  // namespace

void lay_out(fused_batch const& batch, std::span<std::shared_ptr<agreement const> const> agreed,
             std::span<pending_ptr const> units, bool apart, batch_layout& into) {
    into.runs.clear();
    gap_free_memory<std::byte const> inputs;
    gap_free_memory<std::byte> outputs;
    for (auto const& item : batch.items) {
        memory_run next;
        if (pending_request const* const unit = units[item.unit].get()) {
            tensor_io const& io = unit->tensors()[item.tensor];
            next = {static_cast<std::byte const*>(io.in.data), static_cast<std::byte*>(io.out.data), io.in.bytes()};
        } else {
            next.bytes =
                static_cast<std::size_t>(agreed[item.unit]->what.tensors[item.tensor].shape.elements()) * size_of(batch.type);
        }
        if (next.bytes == 0) continue;
        inputs.add(next.in, next.bytes);
        outputs.add(next.out, next.bytes);
        if (!apart && !into.runs.empty() && next.in != nullptr) {
            memory_run& before = into.runs.back();
            if (before.in != nullptr && before.in + before.bytes == next.in && before.out + before.bytes == next.out) {
                before.bytes += next.bytes;
                continue;
            }
        }
        into.runs.push_back(next);
    }
    into.whole_in = inputs.whole();
    into.whole_out = outputs.whole();
    // Memory that partly overlaps itself otherwise is no input of a collective.
    if (into.whole_in != nullptr && into.whole_out != nullptr && into.whole_in != into.whole_out &&
        overlap(into.whole_in, into.whole_out, batch.bytes))
        into.whole_out = nullptr;
}

namespace {

template <typename T>
void fill(void* to, std::size_t count, T value) {
    std::fill_n(static_cast<T*>(to), count, value);
}

template <typename T>
void fill_type(reduction how, void* to, std::size_t count) {
    using limits = std::numeric_limits<T>;
    T value{};
    if (how == reduction::product) value = T{1};
    if (how == reduction::min) value = limits::has_infinity ? limits::infinity() : limits::max();
    if (how == reduction::max) value = limits::has_infinity ? -limits::infinity() : limits::lowest();
    fill(to, count, value);
}

/// f16 and bf16 by their bits: zero, one, plus and minus infinity.
void fill_bits(reduction how, void* to, std::size_t count, std::uint16_t one, std::uint16_t infinity) {
    std::uint16_t value = 0;
    if (how == reduction::product) value = one;
    if (how == reduction::min) value = infinity;
    if (how == reduction::max) value = static_cast<std::uint16_t>(infinity | 0x8000u);
    fill(to, count, value);
}

}  // namespace

void fill_neutral(dtype type, reduction how, void* to, std::size_t count) {
    switch (type) {
        case dtype::f32: return fill_type<float>(how, to, count);
        case dtype::f64: return fill_type<double>(how, to, count);
        case dtype::f16: return fill_bits(how, to, count, 0x3c00, 0x7c00);
        case dtype::bf16: return fill_bits(how, to, count, 0x3f80, 0x7f80);
        case dtype::i32: return fill_type<std::int32_t>(how, to, count);
        case dtype::i64: return fill_type<std::int64_t>(how, to, count);
        case dtype::u8: return fill_type<std::uint8_t>(how, to, count);
        case dtype::i8: return fill_type<std::int8_t>(how, to, count);
        case dtype::boolean:
        case dtype::i16:
        case dtype::u16: return fill_type<std::uint8_t>(reduction::sum, to, count * size_of(type));
    }
}

}  // namespace muster::detail
