#include "launch/keep/kept_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace muster {

namespace {

constexpr std::size_t block_bytes = 256u << 10;

std::uint64_t data_of(kept_store::copy const& one) {
    return kept::place_of(static_cast<std::uint64_t>(one.part), one.slot) + kept::page_bytes;
}

}  // namespace

kept_store::~kept_store() {
    for (auto const& [place, at] : pages_) ::munmap(at, kept::page_bytes);
}

std::string kept_store::path() const {
    return fmt::format("/proc/{}/fd/{}", ::getpid(), fd());
}

std::uint64_t kept_store::id() const {
    struct stat about {};
    if (::fstat(fd(), &about) != 0) throw_system("fstat", "of the states that are kept");
    return about.st_ino;
}

namespace {

namespace fs = std::filesystem;

/// Opens the same file by a descriptor of a process that has it open. Processes of other users are not visible.
unique_fd find_open_file(std::uint64_t id) {
    std::error_code fault;
    for (auto const& process : fs::directory_iterator("/proc", fs::directory_options::skip_permission_denied, fault)) {
        if (!parse_integer(process.path().filename().string())) continue;
        std::error_code hidden;
        for (auto const& one : fs::directory_iterator(process.path() / "fd", hidden)) {
            if (!fs::read_symlink(one.path(), hidden).native().starts_with(kept::memory_mark)) continue;
            struct stat about {};
            if (::stat(one.path().c_str(), &about) != 0 || about.st_ino != id || about.st_uid != ::geteuid()) continue;
            if (unique_fd file(::open(one.path().c_str(), O_RDWR | O_CLOEXEC)); file) return file;
        }
    }
    return {};
}

}  // namespace

bool kept_store::adopt(std::uint64_t id) {
    auto file = find_open_file(id);
    if (!file) return false;
    for (auto const& [place, at] : pages_) ::munmap(at, kept::page_bytes);
    pages_.clear();
    file_ = std::move(file);
    return true;
}

std::uint64_t kept_store::size() const {
    struct stat about {};
    if (::fstat(fd(), &about) != 0) throw_system("fstat", "of the states that are kept");
    return static_cast<std::uint64_t>(about.st_size);
}

void* kept_store::page(std::uint64_t place) {
    auto& at = pages_[place];
    if (at == nullptr) {
        void* const made = ::mmap(nullptr, kept::page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd(), static_cast<off_t>(place));
        if (made == MAP_FAILED) throw_system("mmap", "a page of the states that are kept");
        at = made;
    }
    return at;
}

/// Returns null if the file is not that long. A page that nobody has written takes no memory.
kept::head* kept_store::head_of(int part, std::size_t slot) {
    auto const place = kept::place_of(static_cast<std::uint64_t>(part), slot);
    if (size() < place + kept::page_bytes) return nullptr;
    auto const data = ::lseek(fd(), static_cast<off_t>(place), SEEK_DATA);
    if (data < 0 || static_cast<std::uint64_t>(data) >= place + kept::page_bytes) return nullptr;
    return static_cast<kept::head*>(page(place));
}

std::vector<int> kept_store::parts() const {
    std::vector<int> found;
    for (off_t at = 0; (at = ::lseek(fd(), at, SEEK_DATA)) >= 0;) {
        auto const part = static_cast<std::uint64_t>(at) / kept::part_bytes;
        found.push_back(static_cast<int>(part));
        at = static_cast<off_t>(kept::place_of(part + 1));
    }
    return found;
}

bool kept_store::has_owner(int part) const {
    auto lock = kept::owner_lock(static_cast<std::uint64_t>(part));
    return ::fcntl(fd(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

std::vector<kept_store::copy> kept_store::copies(int part) {
    std::vector<copy> found;
    auto const end = size();
    for (std::size_t slot = 0; slot < kept::slots; ++slot) {
        auto const* const head = head_of(part, slot);
        if (head == nullptr) continue;
        auto const ready = head->ready.load();
        if (ready != kept::whole && ready != kept::held) continue;
        copy const one{part, slot, head->number, head->step, head->bytes, head->sum, ready == kept::held, head->by};
        auto const place = data_of(one);
        bool const fits = one.bytes <= kept::slot_bytes - kept::page_bytes && place + one.bytes <= end && one.bytes % 64 == 0;
        if (fits) found.push_back(one);
    }
    return found;
}

std::vector<kept_store::copy> kept_store::sound_copies() {
    std::vector<copy> found;
    for (int const part : parts())
        for (auto const& one : copies(part))
            if (is_sound(one)) found.push_back(one);
    return found;
}

bool kept_store::is_sound(copy const& one) const {
    kept::line_sums sums;
    std::vector<std::byte> block(block_bytes);
    for (std::uint64_t at = 0; at < one.bytes; at += block_bytes) {
        auto const part = std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, one.bytes - at)));
        read(one, at, part);
        sums.add(part.data(), part.size());
        on_progress();
    }
    return sums.value() == one.sum;
}

void kept_store::want(int part, std::uint64_t step) {
    auto& wanted = static_cast<kept::control*>(page(kept::place_of(static_cast<std::uint64_t>(part))))->wanted;
    wanted.store(step);
    if (step == 0) return;
    std::optional<copy> first;
    for (auto const& one : copies(part))
        if (one.step >= step && (!first || std::pair(one.step, first->number) < std::pair(first->step, one.number))) first = one;
    if (first && wanted.compare_exchange_strong(step, 0)) hold(*first);  // otherwise its owner has held one meanwhile
}

void kept_store::hold(copy const& one) {
    auto expected = kept::whole;
    if (auto* const head = head_of(one.part, one.slot)) head->ready.compare_exchange_strong(expected, kept::held);
}

void kept_store::release(copy const& one) {
    auto expected = kept::held;
    if (auto* const head = head_of(one.part, one.slot)) head->ready.compare_exchange_strong(expected, kept::whole);
}

void kept_store::read(copy const& one, std::uint64_t at, std::span<std::byte> to) const {
    for (std::size_t done = 0; done < to.size();) {
        auto const n = ::pread(fd(), to.data() + done, to.size() - done, static_cast<off_t>(data_of(one) + at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw_system("pread", "of a state that is kept");
        done += static_cast<std::size_t>(n);
    }
}

kept_store::copy kept_store::begin(copy const& like) {
    if (like.part < 0 || static_cast<std::uint64_t>(like.part) >= kept::most_parts || like.bytes % kept::line_bytes != 0 ||
        like.bytes > kept::slot_bytes - kept::page_bytes)
        throw error(errc::invalid_data, "a state that is to be kept is none");
    std::array<slot_use, kept::slots> uses;
    for (std::size_t slot = 0; slot < kept::slots; ++slot)
        if (auto const* const head = head_of(like.part, slot); head != nullptr)
            uses[slot] = {head->ready.load() == kept::held, head->ready.load() == kept::half ? 1 : 1 + head->number};
    auto const chosen = choose_slot(uses);
    if (!chosen) throw error(errc::internal, "each copy of a state is held");
    copy made = like;
    made.slot = *chosen;
    made.held = false;
    auto const place = kept::place_of(static_cast<std::uint64_t>(made.part), made.slot);
    if (::fallocate(fd(), 0, static_cast<off_t>(place), static_cast<off_t>(kept::page_bytes + made.bytes)) != 0)
        throw_system("fallocate", fmt::format("{} for a state that is kept", format_bytes(made.bytes)));
    auto* const head = static_cast<kept::head*>(page(place));
    head->ready.store(kept::half);
    head->number = made.number;
    head->step = made.step;
    head->bytes = made.bytes;
    head->sum = made.sum;
    head->by = made.by;
    return made;
}

void kept_store::write(copy const& one, std::uint64_t at, std::span<std::byte const> bytes) {
    if (at > one.bytes || bytes.size() > one.bytes - at) throw error(errc::invalid_data, "a piece lies outside of its state");
    for (std::size_t done = 0; done < bytes.size();) {
        auto const n = ::pwrite(fd(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(data_of(one) + at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) throw_system("pwrite", "of a state that is kept");
        done += static_cast<std::size_t>(n);
    }
}

bool kept_store::finish(copy const& one) {
    if (!is_sound(one)) return false;
    head_of(one.part, one.slot)->ready.store(kept::whole);
    return true;
}

void kept_store::drop(copy const& one) {
    auto const place = kept::place_of(static_cast<std::uint64_t>(one.part), one.slot);
    if (auto* const head = head_of(one.part, one.slot)) head->ready.store(kept::half);
    auto const pages = kept::page_bytes + (one.bytes + kept::page_bytes - 1) / kept::page_bytes * kept::page_bytes;
    ::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place), static_cast<off_t>(pages));
}

void kept_store::drop_part(int part) {
    auto const place = kept::place_of(static_cast<std::uint64_t>(part));
    ::fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(place),
                static_cast<off_t>(kept::part_bytes));
}

}  // namespace muster
