#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/backend/argument_checks.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/shm_operation.hpp"

namespace muster::shm {

// The sendrecv of two ranks. Its announcements lie apart from those of collectives, so that the two kinds do not count each
// other's numbers. One announcement a pair is enough: a sendrecv ends only when both ranks have finished reading.

void shm_operation::announce_pair(world& all) {
    auto const peer = static_cast<std::size_t>(what_.root);
    sequence_ = ++all.pair_sequence[peer];
    announcement& say = all.own().announced_to(peer);
    say.signature = signature_of(what_);
    say.count = what_.in.count;
    say.tensors.in = reinterpret_cast<std::uintptr_t>(what_.in.data);
    say.tensors.out = what_.out.count;
    say.sequence.store(sequence_, std::memory_order_release);
    stage_ = stage::pair_match;
}

std::size_t shm_operation::pair_rounds(world const& all, std::size_t bytes) const noexcept {
    return (bytes + all.sizes.pair_bytes - 1) / all.sizes.pair_bytes;
}

bool shm_operation::match_pair(world& all) {
    announcement const& mine = all.own().announced_to(static_cast<std::size_t>(what_.root));
    announcement const& theirs = all.of(what_.root).announced_to(static_cast<std::size_t>(all.rank));
    if (theirs.sequence.load(std::memory_order_acquire) < sequence_) return false;
    if (theirs.signature != mine.signature || theirs.count != mine.tensors.out || theirs.tensors.out != mine.count)
        throw comm_error(
            errc::peer_failed,
            fmt::format("sendrecv on rank {} ({}): this rank sends {} and receives {} elements of {}, {} sends {} and "
                        "receives {} of {}",
                        all.rank, all.hosts[static_cast<std::size_t>(all.rank)], mine.count, mine.tensors.out,
                        to_string(what_.in.type), name_of(all, what_.root), theirs.count, theirs.tensors.out,
                        theirs.signature == mine.signature ? "them" : "another type"),
            {what_.root});
    auto const peer = static_cast<std::size_t>(what_.root);
    next_ = 0;
    filled_ = all.pair_filled[peer];
    worked_ = all.pair_worked[peer];
    stage_ = stage::pair_rounds;
    return advance_pair(all);
}

bool shm_operation::advance_pair(world& all) {
    auto const peer = static_cast<std::size_t>(what_.root);
    counters& own = all.own().progress_with(peer);
    counters const& theirs = all.of(what_.root).progress_with(static_cast<std::size_t>(all.rank));
    std::size_t const pair_bytes = all.sizes.pair_bytes;
    if (all.direct && std::max(what_.in.bytes(), what_.out.bytes()) > pair_bytes) {
        auto const address = all.of(what_.root).announced_to(static_cast<std::size_t>(all.rank)).tensors.in;
        if (next_ < what_.out.bytes()) {
            std::size_t const bytes = std::min(std::size_t{4} << 20, what_.out.bytes() - next_);
            if (int const code = read_memory(all.processes[peer].pid, out() + next_, address + next_, bytes); code != 0)
                throw_copy_failed(all, what_.root, "process_vm_readv", code);
            next_ += bytes;
            if (next_ < what_.out.bytes()) return false;
        }
    } else {
        std::uint64_t const send_end = all.pair_filled[peer] + pair_rounds(all, what_.in.bytes());
        std::uint64_t const receive_end = all.pair_worked[peer] + pair_rounds(all, what_.out.bytes());
        for (bool moved = true; moved;) {
            moved = false;
            if (filled_ < send_end && (filled_ == 0 || theirs.worked.load(std::memory_order_acquire) >= filled_ - 1)) {
                std::size_t const at = static_cast<std::size_t>(filled_ - all.pair_filled[peer]) * pair_bytes;
                std::memcpy(all.own().pair_buffer(filled_), in() + at, std::min(pair_bytes, what_.in.bytes() - at));
                own.filled.store(++filled_, std::memory_order_release);
                moved = true;
            }
            if (worked_ < receive_end && theirs.filled.load(std::memory_order_acquire) >= worked_ + 1) {
                std::size_t const at = static_cast<std::size_t>(worked_ - all.pair_worked[peer]) * pair_bytes;
                std::memcpy(out() + at, all.of(what_.root).pair_buffer(worked_), std::min(pair_bytes, what_.out.bytes() - at));
                own.worked.store(++worked_, std::memory_order_release);
                moved = true;
            }
        }
        if (filled_ < send_end || worked_ < receive_end) return false;
        all.pair_filled[peer] = filled_;
        all.pair_worked[peer] = worked_;
    }
    own.finished.store(sequence_, std::memory_order_release);
    stage_ = stage::pair_leave;
    return advance(all);
}

}  // namespace muster::shm
