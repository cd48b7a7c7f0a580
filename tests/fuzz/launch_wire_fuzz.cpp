// links: muster::launch
// iterations: 3000
// Whatever arrives at a connection before anybody has proved anything is framed within bounds, and never taken for a sealed frame; what agents pass on and
// the ranks of hosts are read as they were written, or refused.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/wire/frame_channel.hpp"
#include "launch/wire/secure_session.hpp"

namespace {

/// The frames of `bytes` as a channel reads them, in two pieces; sealed ones of nobody if `secured`.
void read_frames(std::string_view bytes, bool secured, std::size_t largest) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) std::abort();
    muster::unique_fd writing(ends[1]);
    muster::event_loop loop;
    std::size_t taken = 0;
    auto const on_frame = [&](std::string_view frame) {
        if (secured || frame.size() > largest) std::abort();
        taken += frame.size();
    };
    muster::frame_channel channel(loop, muster::unique_fd(ends[0]), {on_frame, [&](std::string const&) { loop.stop(); }},
                                  largest);
    if (secured)
        channel.secure(std::make_unique<muster::secure_session>(muster::run_key{}, muster::wire_end::launcher, muster::nonce{},
                                                                muster::nonce{}));
    auto const half = bytes.size() / 2;
    for (auto const piece : {bytes.substr(0, half), bytes.substr(half)})
        if (!piece.empty() && ::write(writing.get(), piece.data(), piece.size()) < 0) std::abort();
    writing.reset();
    loop.run();
    if (taken > bytes.size()) std::abort();
}

/// The bytes as the numbers of a start message.
void read_ranks(std::string_view bytes) {
    std::vector<int> runs;
    for (std::size_t at = 0; at + sizeof(int) <= bytes.size() && runs.size() < 50; at += sizeof(int)) {
        int number = 0;
        std::memcpy(&number, bytes.data() + at, sizeof number);
        runs.push_back(number % 2 == 0 ? number : number >> 24);  // half of them small
    }
    for (std::size_t const hosts : {1, 3, 1000}) try {
            auto const ranks = muster::unpack_ranks(runs, hosts, 8000);
            if (muster::unpack_ranks(muster::pack_ranks(ranks), hosts, 8000) != ranks) std::abort();
        } catch (muster::error const&) {
        }
    try {
        muster::parse_numbers(bytes.substr(0, 64), "fuzz");
    } catch (muster::error const&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data),
                                 std::min<std::size_t>(size, 16384));  // a socket takes that at once
    read_frames(bytes, false, muster::greeting_bytes);
    read_frames(bytes, true, 4096);
    if (auto const nonce = muster::read_greeting(bytes); nonce && muster::make_greeting(*nonce) != bytes) std::abort();
    if (auto const nonce = muster::read_answer(bytes); nonce && muster::make_answer(*nonce) != bytes) std::abort();
    if (auto const one = muster::wire::read_rank_frame(bytes); one && muster::wire::encode(*one) != bytes) std::abort();
    if (auto const event = muster::read_event(bytes); event && muster::encode(*event) != bytes) std::abort();
    read_ranks(bytes);
    return 0;
}
