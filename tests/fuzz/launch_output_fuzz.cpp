// links: muster::launch
// iterations: 3000
// Any bytes as what four ranks print, cut and mixed anyhow, within windows that open anyhow: every rank's lines come out whole and in order; and any bytes as
// a frame are a piece that encodes to the same, or none.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "launch/ranks/rank_stream.hpp"
#include "launch/shim/launcher_line.hpp"
#include "launch/wire/frame_channel.hpp"

namespace {

using muster::wire::output_piece;

/// One rank's shim and what the launcher makes of it.
struct rank_here {
    std::string out, err;  ///< printed
    std::string got_out, got_err, notes;
    std::size_t room = 7;  ///< that the shim knows of
    muster::line_splitter out_lines, err_lines;
    muster::output_sender sender{[this](std::string_view frame) { take(frame); }, 7};

    void take(std::string_view frame) {
        auto const piece = muster::wire::read_output(frame);
        if (!piece || piece->bytes.empty() || piece->bytes.size() > muster::wire::largest_output_bytes) std::abort();
        if (piece->what == output_piece::kind::note) {
            notes += piece->bytes;  // which takes no room
            return;
        }
        if (piece->bytes.size() > room) std::abort();
        room -= piece->bytes.size();
        bool const is_err = piece->what == output_piece::kind::err;
        auto const lines = (is_err ? err_lines : out_lines).push(piece->bytes);
        if (!lines.empty() && lines.back() != '\n') std::abort();
        (is_err ? got_err : got_out) += lines;
    }
    void add_room(std::size_t bytes) {
        room += bytes;
        sender.add_room(bytes);
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const piece = muster::wire::read_output(text); piece && muster::wire::encode(*piece) != text) std::abort();
    std::array<rank_here, 4> ranks;
    for (std::size_t at = 0; at < size;) {
        auto& rank = ranks[data[at] % 4];
        auto const what = data[at] / 4 % 8;
        std::size_t const n = std::min<std::size_t>(1 + data[at] / 32 * 13, size - at);
        auto const bytes = std::string(text.substr(at, n));
        at += n;
        if (what == 0) rank.add_room(n * 3);
        if (what == 1) rank.sender.note("a note\n");
        if (what <= 1) continue;
        (what == 2 ? rank.err : rank.out) += bytes;
        rank.sender.write(what == 2 ? STDERR_FILENO : STDOUT_FILENO, bytes);
    }
    for (auto& rank : ranks) {
        rank.add_room(1u << 20);
        if (!rank.sender.sent_all() || rank.sender.congested()) std::abort();
        if (rank.got_out + rank.out_lines.finish() != rank.out || rank.got_err + rank.err_lines.finish() != rank.err)
            std::abort();
        if (rank.notes.size() % 7 != 0) std::abort();
    }
    return 0;
}
