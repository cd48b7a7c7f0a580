#include "io/loader/windowed_order.hpp"

#include <algorithm>

namespace muster {

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
