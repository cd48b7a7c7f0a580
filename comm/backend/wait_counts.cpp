#include "comm/backend/wait_counts.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "base/unique_fd.hpp"

namespace muster {

namespace {

std::uint64_t nanoseconds(duration what) {
    return static_cast<std::uint64_t>(std::max(what.count(), 0.0) * 1e9);
}

}  // namespace

std::shared_ptr<wait_counts> wait_counts::open(std::string const& path, use what) noexcept try {
    if (path.empty()) return nullptr;
    unique_fd const file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
    struct stat found {};
    void* memory = MAP_FAILED;
    if (file && ::fstat(file.get(), &found) == 0 && found.st_size == static_cast<off_t>(wait_page::bytes))
        memory = ::mmap(nullptr, wait_page::bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) {
        spdlog::debug("waits are not counted: {}={}: {}", wait_page_variable, path, std::strerror(errno));
        return nullptr;
    }
    auto& page = *static_cast<wait_page*>(memory);
    if (page.layout != wait_page::known_layout) {
        ::munmap(memory, wait_page::bytes);
        return nullptr;
    }
    if (what == use::collectives) page.users.fetch_add(1, std::memory_order_relaxed);
    return std::shared_ptr<wait_counts>(new wait_counts(page));
} catch (std::exception const&) {
    return nullptr;
}

wait_counts::~wait_counts() {
    ::munmap(&page_, wait_page::bytes);
}

wait_page::other_rank* wait_counts::place_of(int rank) noexcept {
    return rank < 0 || rank >= static_cast<int>(page_.by_rank.size()) ? nullptr : &page_.by_rank[static_cast<std::size_t>(rank)];
}

void wait_counts::add_time(duration waited, int awaited) noexcept {
    auto const ns = nanoseconds(waited);
    page_.waited_ns.fetch_add(ns, std::memory_order_relaxed);
    if (auto* const rank = place_of(awaited)) rank->waited_ns.fetch_add(ns, std::memory_order_relaxed);
}

void wait_counts::add_wait(int last) noexcept {
    page_.collectives.fetch_add(1, std::memory_order_relaxed);
    if (auto* const rank = place_of(last)) rank->times.fetch_add(1, std::memory_order_relaxed);
}

void wait_counts::add_batch(duration waited) noexcept {
    page_.batches.fetch_add(1, std::memory_order_relaxed);
    page_.data_ns.fetch_add(nanoseconds(waited), std::memory_order_relaxed);
}

}  // namespace muster
