#include "launch/samples/rank_waits.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace muster {

namespace {

constexpr std::size_t most_named = 4;

double seconds(std::atomic<std::uint64_t> const& ns) {
    return static_cast<double>(ns.load(std::memory_order_relaxed)) * 1e-9;
}

}  // namespace

void read_waits(wait_page const& page, rank_sample& to) {
    if (page.batches.load(std::memory_order_relaxed) != 0) to.data_wait_s = seconds(page.data_ns);
    if (page.users.load(std::memory_order_relaxed) == 0) return;
    auto& found = to.waits.emplace();
    found.collectives = page.collectives.load(std::memory_order_relaxed);
    found.waited_s = seconds(page.waited_ns);
    for (std::size_t rank = 0; rank < page.by_rank.size(); ++rank)
        if (auto const times = page.by_rank[rank].times.load(std::memory_order_relaxed); times > 0)
            found.longest.push_back({static_cast<int>(rank), times, seconds(page.by_rank[rank].waited_ns)});
    std::ranges::sort(found.longest, std::ranges::greater(), &waits_for_rank::waited_s);
    if (found.longest.size() > most_named) found.longest.resize(most_named);
}

rank_waits rank_waits::make() noexcept {
    rank_waits made;
    unique_fd file(::memfd_create("muster-waits", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file || ::ftruncate(file.get(), wait_page::bytes) != 0) return made;
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        return made;  // reading what was cut off ends a process
    void* const memory = ::mmap(nullptr, wait_page::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return made;
    made.page_.reset(static_cast<wait_page*>(memory));
    made.page_->layout = wait_page::known_layout;
    made.file_ = std::move(file);
    return made;
}

std::string rank_waits::path() const {
    return file_ ? fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get()) : std::string();
}

void rank_waits::unmap::operator()(wait_page* page) const noexcept {
    ::munmap(page, wait_page::bytes);
}

}  // namespace muster
