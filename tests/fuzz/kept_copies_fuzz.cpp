// links: muster::keep
// iterations: 2000
// What a keeper is sent: frames of copies are read as they were written, or refused, and no sequence of them makes a copy that is not whole, or reaches beyond its place.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "launch/keep/copy_frames.hpp"
#include "launch/keep/copy_receiver.hpp"

namespace {

using muster::wire::copy_frame;

/// The bytes as frames: a length, and so many bytes; heads get sizes that a test's memory has room for.
void take_all(std::string_view bytes) {
    muster::kept_store own, of_others;
    muster::copy_intake intake(own, of_others);
    while (!bytes.empty()) {
        auto const size = std::min<std::size_t>(static_cast<unsigned char>(bytes[0]), bytes.size() - 1);
        std::string frame(bytes.substr(1, size));
        bytes.remove_prefix(1 + size);
        if (auto head = muster::wire::read_copy_frame(frame);
            head && head->what == copy_frame::kind::head && head->size < (1ULL << 50)) {
            head->size %= 1u << 16;
            frame = muster::wire::encode(*head);
        }
        auto const answer = intake.take(frame);
        if (!muster::wire::read_copy_frame(answer)) std::abort();
    }
    for (auto* const store : {&own, &of_others})
        for (int const part : store->parts())
            for (auto const& one : store->copies(part))
                if (!store->is_sound(one)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), std::min<std::size_t>(size, 4096));
    if (auto const one = muster::wire::read_copy_frame(bytes); one && muster::wire::encode(*one) != bytes) std::abort();
    take_all(bytes);
    return 0;
}
