#include "comm/shm/shm_world.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/trust/sha256.hpp"
#include "base/units.hpp"
#include "comm/backend/world_record.hpp"
#include "comm/shm/memory/remote_memory.hpp"
#include "comm/shm/memory/shared_buffers.hpp"
#include "comm/shm/rendezvous/shm_rendezvous.hpp"
#include "comm/tensor/simd.hpp"

namespace muster::shm {

namespace {

/// Returns the name of a rendezvous: equal on its ranks, different for all others of this machine. It reveals neither the job
/// step's name, which is a secret if muster has made it, nor those of later steps. It has no user number, which differs for a
/// rank in its own user namespace.
std::string key_of(std::string const& name) {
    return "muster-shm-" + sha256_digits("muster-shm " + name, 16);
}

template <typename Bits>
bool share_a_bit(Bits const& a, Bits const& b) noexcept {
    for (std::size_t i = 0; i < a.size(); ++i)
        if ((a[i] & b[i]) != 0) return true;
    return false;
}

/// Returns why this rank cannot read every other one's memory, or "" if it can. The number by which a rank knows its process may
/// mean another process here, even this one.
std::string probe(world const& all) {
    for (int rank = 0; rank < all.size; ++rank) {
        station const& theirs = all.of(rank).here();
        pid_t const pid = all.processes[static_cast<std::size_t>(rank)].pid;
        if (!theirs.token) return fmt::format("rank {} has nothing to prove that its memory is its own", rank);
        process_token seen;
        int const code = read_memory(pid, &seen, theirs.token_address, sizeof seen);
        if (code != 0) return why_no_memory_access(code);
        if (seen != as_held(theirs.token))
            return fmt::format("process {} is not rank {} here: that is in another PID namespace", pid, rank);
    }
    return {};
}

/// Returns a buffer of this process on which to try mapping; none if the process can have no more files.
comm_buffer buffer_to_probe() {
    try {
        return allocate_shared(1);
    } catch (error const& problem) {
        spdlog::debug("shm: {}", problem.what());
        return {};
    }
}

/// Returns whether this rank can map what every other one shares.
bool probe_mapping(world& all) {
    for (int rank = 0; rank < all.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        shared_place const& place = all.of(rank).here().token_place;
        int code = 0;
        if (place.buffer == 0 || all.mapped[at].find(all.owners[at], place, 1, code) == nullptr) return false;
    }
    return true;
}

/// The time, in nanoseconds, that a line takes from the rank that has written it to the other rank: it depends on where their
/// processors are.
struct line_times {
    double newest = 1e9;    ///< from the writer's first-level cache
    double older = 1e9;     ///< from its other caches
    double streamed = 1e9;  ///< written with streaming stores
};

constexpr std::size_t newest_bytes = std::size_t{32} << 10, older_bytes = std::size_t{96} << 10;

/// Waits until all ranks have done the same number of steps; false if they do not come at once. Spins: a rank that sleeps loses
/// its cached data.
bool step_together(world const& all, std::uint32_t step) noexcept {
    all.own().here().measured.store(step, std::memory_order_release);
    auto const until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    for (int rank = 0; rank < all.size; ++rank)
        while (all.of(rank).here().measured.load(std::memory_order_acquire) < step)
            if (std::chrono::steady_clock::now() > until) return false;
    return true;
}

/// Takes the shortest time of several pieces, which no interruption has lengthened.
void read_lines(world const& all, std::byte const* from, std::size_t bytes, double& ns) noexcept {
    constexpr std::size_t piece = std::size_t{8} << 10;
    for (std::size_t at = 0; at < bytes; at += piece) {
        auto const begin = std::chrono::steady_clock::now();
        std::memcpy(all.scratch.get(), from + at, piece);
        std::chrono::duration<double, std::nano> const took = std::chrono::steady_clock::now() - begin;
        ns = std::min(ns, took.count() * line_bytes / piece);
    }
}

/// Takes about 50 us. Returns false if the ranks do not run at the same time.
bool time_lines(world const& all, line_times& found) noexcept {
    std::byte* const own = all.scratch.get() + scratch_bytes / 2;
    std::memset(own, 1, older_bytes + newest_bytes);
    std::uint32_t step = 0;
    for (int turn = 0; turn < 3; ++turn) {  // the first one maps the pages
        copy_streaming(all.own().window(1), own, older_bytes);
        std::memcpy(all.own().window(0), own, older_bytes + newest_bytes);
        if (!step_together(all, ++step)) return false;
        region const& theirs = all.of((all.rank + 1) % all.size);
        read_lines(all, theirs.window(0) + older_bytes, newest_bytes, found.newest);
        read_lines(all, theirs.window(0), older_bytes, found.older);
        read_lines(all, theirs.window(1), older_bytes, found.streamed);
        if (!step_together(all, ++step)) return false;
    }
    return true;
}

/// Measures, for people, how long this rank takes to read what another has written.
void measure_distance(world& all) {
    line_times found;
    if (all.crowded || all.size == 1 || older_bytes + newest_bytes > all.sizes.window_size() || !time_lines(all, found)) {
        all.own().here().measured.store(~std::uint32_t{0}, std::memory_order_release);  // nobody waits for this rank
        return;
    }
    all.distance = fmt::format(
        "a line of another rank's takes {:.1f} ns from its first-level cache, {:.1f} ns from its others, {:.1f} ns streamed",
        found.newest, found.older, found.streamed);
    spdlog::debug("shm: {}", all.distance);
}

/// All memory files of a kernel lie on one file system.
std::uint64_t device_of(int file) {
    struct stat about {};
    if (::fstat(file, &about) != 0) throw_system("fstat", "of the memory file of the ranks");
    return about.st_dev;
}

}  // namespace

world join_world(std::string const& name, identity const& who, comm_options const& options) {
    permit_memory_access();
    geometry sizes;
    sizes.ranks = static_cast<std::size_t>(who.world_size);
    shm_rendezvous ranks(
        {key_of(name), describe_world(who, options), who.host, options.deadline, sizes.total_bytes(), options.loss});
    world made = make_world(std::make_shared<shared_memory>(ranks.memory_file(), sizes.total_bytes()), sizes, who.rank);
    divide(made);
    made.own().construct();
    comm_buffer const probed = buffer_to_probe();  // lives until all have voted
    station& here = made.own().here();
    here.who = this_process();
    here.token = own_token();
    here.token_address = own_token_address();
    here.token_place = place_of(probed.data(), probed.bytes());
    ranks.all_say_yes(true);
    std::uint64_t const device = device_of(ranks.memory_file());
    for (int rank = 0; rank < made.size; ++rank) {
        auto const at = static_cast<std::size_t>(rank);
        station const& theirs = made.of(rank).here();
        made.processes[at] = theirs.who;
        made.owners[at] = {theirs.who.pid, theirs.token, device};
        made.hosts[at] = ranks.records()[at].host;
    }
    auto const& mine = ranks.records()[static_cast<std::size_t>(who.rank)].processors;
    for (auto const& record : ranks.records())
        if (record.rank != who.rank && share_a_bit(record.processors, mine)) made.beside.push_back(record.rank);
    // All ranks must agree: it decides about schedules.
    made.crowded = !ranks.all_say_yes(!is_crowded(ranks.records(), made.hosts[static_cast<std::size_t>(who.rank)]));
    // First compares with what the kernel says of the other ends: if that contradicts the ranks, nothing is read or opened.
    bool const same_numbers = ranks.numbers_are_right();
    std::string const refusal = same_numbers ? probe(made) : "the ranks are in several PID namespaces";
    made.direct = ranks.all_say_yes(refusal.empty());
    made.mappable = ranks.all_say_yes(same_numbers && probe_mapping(made));
    measure_distance(made);
    spdlog::debug("shm: {} ranks{}, shared buffers {}, other large reductions and broadcasts {}{}", made.size,
                  made.crowded ? " on fewer processors" : "", made.mappable ? "in place" : "as others",
                  made.direct ? "from memory to memory" : "through shared memory: ",
                  made.direct       ? std::string{}
                  : refusal.empty() ? std::string("another rank was refused")
                                    : refusal);
    return made;
}

}  // namespace muster::shm
