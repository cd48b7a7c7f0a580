#include "io/loader/windowed_order.hpp"

#include <algorithm>
#include <bit>

namespace muster {

namespace {

inline std::uint64_t scramble(std::uint64_t x, std::uint64_t key) noexcept {
    x = (x + key) * 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    return x * 0x94d049bb133111ebu;
}

}  // namespace

std::uint64_t permutation::mix(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

permutation::permutation(std::uint64_t size, std::uint64_t key) noexcept : size_(size) {
    unsigned const bits = std::max(8u, static_cast<unsigned>(std::bit_width(size == 0 ? 0 : size - 1)));
    low_bits_ = bits / 2;
    high_bits_ = bits - low_bits_;
    low_mask_ = (std::uint64_t{1} << low_bits_) - 1;
    for (std::size_t i = 0; i < rounds; ++i) keys_[i] = mix(key + (i + 1) * 0x9e3779b97f4a7c15u);
}

inline std::uint64_t permutation::encipher(std::uint64_t x) const noexcept {
    std::uint64_t left = x >> low_bits_;
    std::uint64_t right = x & low_mask_;
    for (std::size_t i = 0; i < rounds; i += 2) {
        left ^= scramble(right, keys_[i]) >> (64 - high_bits_);
        right ^= scramble(left, keys_[i + 1]) >> (64 - low_bits_);
    }
    return left << low_bits_ | right;
}

std::uint64_t permutation::operator()(std::uint64_t position) const noexcept {
    do position = encipher(position);
    while (position >= size_);
    return position;
}

std::uint64_t permutation::decipher(std::uint64_t x) const noexcept {
    std::uint64_t left = x >> low_bits_;
    std::uint64_t right = x & low_mask_;
    for (std::size_t i = rounds; i > 0; i -= 2) {
        right ^= scramble(left, keys_[i - 1]) >> (64 - low_bits_);
        left ^= scramble(right, keys_[i - 2]) >> (64 - high_bits_);
    }
    return left << low_bits_ | right;
}

std::uint64_t permutation::position_of(std::uint64_t sample) const noexcept {
    do sample = decipher(sample);
    while (sample >= size_);
    return sample;
}

// It cannot be predicted whether a value needs another turn, so it is no branch: those that do are listed, and the list is gone
// through until it is empty. Values next to each other are independent and overlap in the processor.
void permutation::fill(std::uint64_t first, std::uint64_t step, std::span<std::uint64_t> out) const noexcept {
    std::array<std::uint16_t, 256> again;
    while (!out.empty()) {
        std::size_t const count = std::min(out.size(), again.size());
        std::size_t waiting = 0;
        for (std::size_t i = 0; i < count; ++i) {
            out[i] = encipher(first + i * step);
            again[waiting] = static_cast<std::uint16_t>(i);
            waiting += out[i] >= size_ ? 1 : 0;
        }
        while (waiting > 0) {
            std::size_t left = 0;
            for (std::size_t i = 0; i < waiting; ++i) {
                std::uint16_t const place = again[i];
                out[place] = encipher(out[place]);
                again[left] = place;
                left += out[place] >= size_ ? 1 : 0;
            }
            waiting = left;
        }
        out = out.subspan(count);
        first += count * step;
    }
}

windowed_order::windowed_order(std::uint64_t size, std::uint64_t key, shuffle_window window, bool shuffle) noexcept
    : size_(size),
      key_(key),
      window_(window),
      shuffle_(shuffle),
      chunks_(size / window.chunk_samples + (size % window.chunk_samples != 0 ? 1 : 0)),
      order_(chunks_, permutation::mix(key + 1)),
      missing_(chunks_ * window.chunk_samples - size),
      short_place_(chunks_ == 0 ? 0
                   : shuffle    ? order_.position_of(chunks_ - 1)
                                : chunks_ - 1) {}

std::uint64_t windowed_order::begin_of(std::uint64_t place) const noexcept {
    return place * window_.chunk_samples - (place > short_place_ ? missing_ : 0);
}

std::uint64_t windowed_order::window_of(std::uint64_t position) const noexcept {
    // Where the short chunk has passed, windows begin earlier than so many whole chunks would.
    std::uint64_t const w = position / (window_.chunk_samples * window_.chunks);
    return w + 1 < windows() && position >= begin_of((w + 1) * window_.chunks) ? w + 1 : w;
}

hyperslab windowed_order::places_of(std::uint64_t w) const noexcept {
    std::uint64_t const first = std::min(w * window_.chunks, chunks_);
    return {first, std::min<std::uint64_t>(window_.chunks, chunks_ - first)};
}

hyperslab windowed_order::samples_of(std::uint64_t chunk) const noexcept {
    std::uint64_t const first = chunk * window_.chunk_samples;
    return {first, std::min<std::uint64_t>(window_.chunk_samples, size_ - first)};
}

void windowed_order::fill(std::uint64_t first, std::uint64_t step, std::span<std::uint64_t> out) const noexcept {
    if (!shuffle_) {
        for (std::size_t i = 0; i < out.size(); ++i) out[i] = first + i * step;
        return;
    }
    std::uint64_t const chunk = window_.chunk_samples;
    while (!out.empty()) {
        std::uint64_t const w = window_of(first);
        hyperslab const places = places_of(w);
        std::uint64_t const begin = begin_of(places.first);
        std::uint64_t const count = begin_of(places.end()) - begin;
        std::size_t const run = std::min<std::size_t>(out.size(), (begin + count - first - 1) / step + 1);
        permutation(count, permutation::mix(key_ + 2 + w)).fill(first - begin, step, out.first(run));
        // From here on a sample's number within the window is too small, if the short chunk is in it.
        bool const has_short = short_place_ >= places.first && short_place_ < places.end();
        std::uint64_t const after_short = has_short ? begin_of(short_place_) - begin + chunk - missing_ : count;
        for (std::uint64_t& each : out.first(run)) {
            std::uint64_t const place = each >= after_short ? each + missing_ : each;
            each = order_(places.first + place / chunk) * chunk + place % chunk;
        }
        out = out.subspan(run);
        first += run * step;
    }
}

}  // namespace muster
