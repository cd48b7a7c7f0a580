#include "launch/keep/copy_frames.hpp"

namespace muster::wire {

namespace {

constexpr std::size_t head_bytes = 2 + 4 + 7 * 8;

void put(std::string& to, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
}

std::uint64_t take(std::string_view& from, std::size_t bytes) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
    from.remove_prefix(bytes);
    return value;
}

}  // namespace

std::string encode(copy_frame const& one) {
    std::string frame(1, static_cast<char>(one.what));
    if (one.what == copy_frame::kind::head) {
        frame += one.for_neighbour ? '\1' : '\0';
        put(frame, one.part, 4);
        for (auto const value : {one.number, one.step, one.size, one.sum, one.by.generation, one.by.rank, one.by.world_size})
            put(frame, value, 8);
    } else {
        frame += one.bytes;
    }
    return frame;
}

std::optional<copy_frame> read_copy_frame(std::string_view frame) noexcept {
    using kind = copy_frame::kind;
    if (frame.empty()) return std::nullopt;
    copy_frame one;
    one.what = static_cast<kind>(frame[0]);
    switch (one.what) {
        case kind::head:
            if (frame.size() != head_bytes || static_cast<unsigned char>(frame[1]) > 1) return std::nullopt;
            one.for_neighbour = frame[1] != 0;
            frame.remove_prefix(2);
            one.part = static_cast<std::uint32_t>(take(frame, 4));
            one.number = take(frame, 8);
            one.step = take(frame, 8);
            one.size = take(frame, 8);
            one.sum = take(frame, 8);
            one.by.generation = take(frame, 8);
            one.by.rank = take(frame, 8);
            one.by.world_size = take(frame, 8);
            return one;
        case kind::piece:
        case kind::refused: one.bytes = frame.substr(1); return one;
        case kind::end:
        case kind::taken:
        case kind::kept: return frame.size() == 1 ? std::optional(one) : std::nullopt;
    }
    return std::nullopt;
}

}  // namespace muster::wire
