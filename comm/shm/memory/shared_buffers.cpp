#include "comm/shm/memory/shared_buffers.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "comm/backend/memory/shared_memory.hpp"

namespace muster::shm {

namespace {

struct owned_buffer {
    unique_fd file;
    shared_memory memory;
    std::uint64_t number = 0;
    std::size_t bytes = 0;
    std::uint32_t inode = 0;
    process_token owner;
    pid_t process = 0;

    buffer_note& note() const noexcept { return *reinterpret_cast<buffer_note*>(memory.data() + bytes); }
};

/// Sorted by their ends: the first one beyond an address is the only one that it may lie in. Outlives all objects that are
/// destroyed when the program ends.
struct owned_buffers {
    std::mutex guard;
    std::map<std::byte const*, owned_buffer> by_end;
    std::atomic<std::size_t> count{0};
    std::uint64_t made = 0;
};
owned_buffers& all_of_this_process() {
    static auto* const made = new owned_buffers;
    return *made;
}

void release(std::byte const* end) noexcept {
    owned_buffers& all = all_of_this_process();
    owned_buffer gone;
    {
        std::scoped_lock const lock(all.guard);
        auto const at = all.by_end.find(end);
        if (at == all.by_end.end()) return;
        gone = std::move(at->second);
        all.by_end.erase(at);
        all.count.store(all.by_end.size(), std::memory_order_relaxed);
    }
    // A forked child gives up what it inherited; the memory is its parent's.
    if (gone.process != ::getpid() || gone.owner != own_token()) return;
    std::atomic_ref(gone.note().freed).store(1, std::memory_order_release);
    ::fallocate(gone.file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(gone.bytes));
}

}  // namespace

comm_buffer allocate_shared(std::size_t bytes) {
    owned_buffer next;
    refuse_absurd_size(bytes);
    next.bytes = whole_pages(std::max<std::size_t>(bytes, 1));
    next.owner = own_token();
    next.process = ::getpid();
    std::size_t const mapped = next.bytes + whole_pages(sizeof(buffer_note));
    next.file = make_memory_file(mapped);
    next.memory = shared_memory(next.file.get(), mapped);
    next.memory.touch();
    struct stat about {};
    if (::fstat(next.file.get(), &about) != 0) throw_system("fstat", "of a memory file");
    next.inode = static_cast<std::uint32_t>(about.st_ino);
    std::byte* const data = next.memory.data();
    std::byte const* const end = data + next.bytes;

    owned_buffers& all = all_of_this_process();
    comm_buffer made(data, bytes, [end](std::byte*) { release(end); });
    std::scoped_lock const lock(all.guard);
    next.number = ++all.made;
    new (data + next.bytes) buffer_note{next.owner, next.number, next.bytes, 0};
    all.by_end.emplace(end, std::move(next));
    all.count.store(all.by_end.size(), std::memory_order_relaxed);
    return made;
}

shared_place place_of(void const* data, std::size_t bytes) noexcept {
    owned_buffers& all = all_of_this_process();
    if (all.count.load(std::memory_order_relaxed) == 0) return {};
    auto const* const first = static_cast<std::byte const*>(data);
    std::scoped_lock const lock(all.guard);
    auto const at = all.by_end.upper_bound(first);
    if (at == all.by_end.end()) return {};
    owned_buffer const& found = at->second;
    if (first < found.memory.data() || bytes > static_cast<std::size_t>(at->first - first)) return {};
    if (!found.owner || found.owner != own_token()) return {};
    return {found.number, static_cast<std::uint64_t>(first - found.memory.data()), found.file.get(), found.inode};
}

}  // namespace muster::shm
