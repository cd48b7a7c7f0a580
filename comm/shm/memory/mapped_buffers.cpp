#include "comm/shm/memory/mapped_buffers.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>

namespace muster::shm {

namespace {

buffer_note& note_at(shared_memory const& memory, std::size_t bytes) noexcept {
    return *std::launder(reinterpret_cast<buffer_note*>(memory.data() + bytes));
}

}  // namespace

std::byte* mapped_buffers::find(buffers_owner const& owner, shared_place const& place, std::size_t bytes, int& code) {
    for (std::size_t i = 0; i < mapped_.size(); ++i) {
        std::size_t const at = (last_ + i) % mapped_.size();
        entry& each = mapped_[at];
        if (each.buffer != place.buffer) continue;
        last_ = at;
        each.used = ++uses_;
        if (place.offset <= each.bytes && bytes <= each.bytes - place.offset) return each.memory.data() + place.offset;
        code = EBADF;
        return nullptr;
    }
    unique_fd const file(
        ::open(fmt::format("/proc/{}/fd/{}", owner.pid, place.file).c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0) {
        code = errno == ENOENT ? ESRCH : errno;
        return nullptr;
    }
    // The owner may have closed it and have another file of that number, or the number may mean another process here. Nothing is
    // written to a file before its note has proven that it is the one.
    auto const size = static_cast<std::size_t>(about.st_size);
    std::size_t const note_bytes = whole_pages(sizeof(buffer_note));
    code = EBADF;
    if (about.st_dev != owner.device || static_cast<std::uint32_t>(about.st_ino) != place.inode) return nullptr;
    if (!S_ISREG(about.st_mode) || about.st_size < 0 || size % 4096 != 0 || size < note_bytes) return nullptr;
    shared_memory memory(file.get(), size);
    std::size_t const length = size - note_bytes;
    buffer_note const& note = note_at(memory, length);
    if (!owner.token || note.owner != owner.token || note.buffer != place.buffer || note.bytes != length) return nullptr;
    if (place.offset > length || bytes > length - place.offset) return nullptr;
    memory.touch();
    last_ = mapped_.size();
    grown_ = true;
    mapped_.push_back({place.buffer, ++uses_, length, std::move(memory)});
    return mapped_.back().memory.data() + place.offset;
}

void mapped_buffers::tidy() noexcept {
    if (!grown_) return;
    grown_ = false;
    last_ = 0;
    std::erase_if(mapped_, [](entry const& each) {
        return std::atomic_ref(note_at(each.memory, each.bytes).freed).load(std::memory_order_acquire) != 0;
    });
    while (mapped_.size() > most)
        mapped_.erase(std::min_element(mapped_.begin(), mapped_.end(), [](auto& a, auto& b) { return a.used < b.used; }));
}

}  // namespace muster::shm
