#include "comm/mpi/mpi_node_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/unique_fd.hpp"
#include "comm/backend/memory/process_token.hpp"

namespace muster::detail {

namespace {

/// Where a rank's region is, as it is told to the others, which open it through /proc. No pointers: sent as bytes.
struct region_place {
    std::int32_t file = -1;  ///< the owner's descriptor; -1: it has none
    std::uint64_t device = 0, inode = 0;
    shm::process_token proof;  ///< random; what the end of the region holds is as_held() of it
};

struct own_region {
    unique_fd file;
    shm::shared_memory memory;
    region_place place;
};

/// At the end of a region, so that who opens a file that is another one writes nothing to it.
shm::process_token& proof_in(shm::shared_memory const& memory) noexcept {
    return *reinterpret_cast<shm::process_token*>(memory.data() + memory.bytes() - sizeof(shm::process_token));
}

/// Without a place where there can be none.
own_region make_region(std::size_t bytes, std::string& why) try {
    own_region made;
    struct stat about {};
    made.file = shm::make_memory_file(bytes);
    made.memory = shm::shared_memory(made.file.get(), bytes);
    made.memory.touch();
    made.place.proof = shm::own_token();
    if (!made.place.proof || ::fstat(made.file.get(), &about) != 0) {
        why = "this process has nothing to prove that memory is its own";
        return {};
    }
    proof_in(made.memory) = shm::as_held(made.place.proof);
    made.place.file = made.file.get();
    made.place.device = about.st_dev;
    made.place.inode = about.st_ino;
    return made;
} catch (error const& problem) {
    why = problem.what();
    return {};
}

/// Nothing is written to it before its proof was read: the numbers may mean another process and another file here.
std::optional<shm::shared_memory> map_region(std::int32_t pid, region_place const& place, std::size_t bytes,
                                             std::string& why) try {
    if (place.file < 0) {
        why = "it has none";
        return std::nullopt;
    }
    auto const path = fmt::format("/proc/{}/fd/{}", pid, place.file);
    unique_fd const file(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0) {
        why = fmt::format("open of {}: {}", path, std::strerror(errno));
        return std::nullopt;
    }
    why = "there is another file";
    if (!S_ISREG(about.st_mode) || about.st_dev != place.device || about.st_ino != place.inode ||
        static_cast<std::size_t>(about.st_size) != bytes)
        return std::nullopt;
    shm::shared_memory memory(file.get(), bytes);
    if (proof_in(memory) != shm::as_held(place.proof)) return std::nullopt;
    why.clear();
    return memory;
} catch (error const& problem) {
    why = problem.what();
    return std::nullopt;
}

/// Process numbers mean the same to all of them. The same on all ranks.
bool are_on_one_machine(std::span<world_record const> ranks) noexcept {
    auto const machine = ranks.front().process.machine;
    return machine != 0 && std::all_of(ranks.begin(), ranks.end(), [&](auto& each) { return each.process.machine == machine; });
}

}  // namespace

std::unique_ptr<node_memory> node_memory::make(MPI_Comm comm, std::span<world_record const> ranks, int own,
                                               std::size_t largest_bytes) {
    if (ranks.size() < 2 || largest_bytes == 0 || !are_on_one_machine(ranks)) return nullptr;
    auto made = std::make_unique<node_memory>();
    made->rank_ = own;
    made->largest_bytes_ = largest_bytes;
    made->payload_step_ = (largest_bytes + 127) / 128 * 128;
    std::size_t const bytes = shm::whole_pages(payloads_at + large_entries * made->payload_step_ + sizeof(shm::process_token));
    std::string why;
    own_region mine = make_region(bytes, why);
    std::vector<region_place> places(ranks.size());
    check(MPI_Allgather(&mine.place, sizeof mine.place, MPI_BYTE, places.data(), sizeof mine.place, MPI_BYTE, comm),
          "MPI_Allgather");
    int shared = why.empty() ? 1 : 0;
    for (std::size_t rank = 0; rank < ranks.size() && shared != 0; ++rank) {
        if (static_cast<int>(rank) == own) {
            made->regions_.push_back(std::move(mine.memory));
            continue;
        }
        auto region = map_region(ranks[rank].process.pid, places[rank], bytes, why);
        if (region)
            made->regions_.push_back(std::move(*region));
        else
            shared = 0;
        if (!region) why = fmt::format("the memory of rank {}: {}", rank, why);
    }
    // Files are open until all have mapped them.
    int all_share = 0;
    check(MPI_Allreduce(&shared, &all_share, 1, MPI_INT, MPI_MIN, comm), "MPI_Allreduce");
    if (all_share != 0) return made;
    spdlog::debug("mpi: small tensors go as messages: {}", why.empty() ? "another rank cannot share memory" : why);
    return nullptr;
}

void node_memory::give_up(int because_of) noexcept {
    node_standing& own = standing(rank_);
    if (own.gave_up.load(std::memory_order_relaxed)) return;
    own.because_of = because_of;
    own.gave_up.store(true, std::memory_order_release);
}

bool node_memory::has_given_up(int rank, int& because_of) const noexcept {
    node_standing const& theirs = standing(rank);
    if (!theirs.gave_up.load(std::memory_order_acquire)) return false;
    because_of = theirs.because_of;
    return true;
}

int node_memory::find_started(std::uint32_t sequence) const noexcept {
    for (int rank = 0; rank < size(); ++rank) {
        if (rank == rank_) continue;
        for (std::uint64_t i = 0; i < entries; ++i) {
            node_entry const& each = entry(rank, i);
            if (each.number.load(std::memory_order_acquire) != 0 &&
                each.signature.load(std::memory_order_relaxed) >> 32 == sequence)
                return rank;
        }
    }
    return -1;
}

}  // namespace muster::detail
