#include "comm/membership/kept_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "pmix/member_message.hpp"

namespace muster {

using kept::line_bytes;
using kept::page_bytes;

kept_state::kept_state(std::string_view place) {
    auto const colon = place.find(':');
    if (place.empty() || colon == place.size() - 1) {
        file_ = kept::make_memory();
        return;
    }
    auto const part = parse_integer(place.substr(0, colon));
    if (!part || *part < 0 || static_cast<std::uint64_t>(*part) >= kept::most_parts || colon == std::string_view::npos)
        throw_error(errc::usage, "{}={} is not PART:FILE; leave it to muster run --keep-state", elastic::kept_state_variable,
                    place);
    part_ = static_cast<std::uint64_t>(*part);
    rlimit files{};
    if (::getrlimit(RLIMIT_FSIZE, &files) == 0 &&
        files.rlim_cur != RLIM_INFINITY)  // a limit would end the process: parts lie far apart
        throw error(errc::unavailable,
                    "the state cannot be kept where file sizes are limited; run ulimit -f unlimited, or leave out --keep-state");
    std::string const path(place.substr(colon + 1));
    file_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file_) {  // the keeper may be lost; the other ranks keep their file, and this rank trains on with them
        spdlog::warn("what this rank commits does not outlive its process: open {}: {}; its node's keeper has ended, perhaps",
                     path, std::strerror(errno));
        file_ = kept::make_memory();
        part_ = 0;
        return;
    }
    auto lock = kept::owner_lock(part_);
    ::fcntl(file_.get(), F_OFD_SETLK, &lock);  // a child of the previous process may still hold it, which shows the same
    void* const page = map_page();
    control_ = static_cast<kept::control*>(page);
    commits_ = continue_from(look_at_slots(true));
}

kept_state::~kept_state() {
    for (auto const& one : slots_)
        if (one.at != nullptr) ::munmap(one.at, one.bytes);
    if (control_ != nullptr) ::munmap(control_, page_bytes);
}

void* kept_state::map_page() const {
    auto const place = static_cast<off_t>(kept::place_of(part_));
    if (::fallocate(file_.get(), 0, place, page_bytes) != 0) throw_system("fallocate", "a page for the state that is kept");
    void* const at = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), place);
    if (at == MAP_FAILED) throw_system("mmap", "a page of the state that is kept");
    return at;
}

kept::head& kept_state::map(std::size_t which, std::size_t bytes) {
    auto& one = slots_.at(which);
    if (one.bytes < bytes) {
        auto const place = static_cast<off_t>(kept::place_of(part_, which));
        // Allocates the memory now: a write to a missing page would end the process.
        if (::fallocate(file_.get(), 0, place, static_cast<off_t>(bytes)) != 0)
            throw_system("fallocate", fmt::format("{} for the state that is kept", format_bytes(bytes)));
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), place);
        if (at == MAP_FAILED) throw_system("mmap", fmt::format("{} of the state that is kept", format_bytes(bytes)));
        if (one.at != nullptr) ::munmap(one.at, one.bytes);
        one = {static_cast<std::byte*>(at), bytes};
    }
    return *reinterpret_cast<kept::head*>(one.at);
}

/// `with_whole` reads all copies.
kept_slots kept_state::look_at_slots(bool with_whole) {
    kept_slots all;
    for (std::size_t which = 0; which < kept::slots; ++which) {
        bool const whole = with_whole && find_whole(which) != nullptr;
        if (slots_[which].at == nullptr) continue;
        auto const& head = *reinterpret_cast<kept::head const*>(slots_[which].at);
        all[which] = {head.number, head.step, whole};
    }
    return all;
}

/// Where ranks have gone back to an earlier commit, later ones are of another history.
void kept_state::forget_later(std::uint64_t step) {
    auto const later = [step](kept_slot const& one) { return is_later(one, step); };
    bool const reads = !commits_.has_committed && std::ranges::any_of(look_at_slots(false), later);
    for (auto const which : begin_commit(commits_, look_at_slots(reads), step)) {
        auto expected = kept::whole;
        reinterpret_cast<kept::head*>(slots_[which].at)->ready.compare_exchange_strong(expected, kept::half);
    }
}

std::size_t kept_state::take_slot() {
    for (auto const which : slots_for_commit(look_at_slots(false), commits_.newest)) {
        auto& ready = map(which, std::max(slots_[which].bytes, page_bytes)).ready;
        auto now = ready.load();
        if (now != kept::held && ready.compare_exchange_strong(now, kept::half)) return which;
    }
    throw error(errc::internal, "each copy of the kept state is held for its way to the next node");
}

void kept_state::commit(std::uint64_t step, std::span<std::span<std::byte const> const> pieces, kept::origin const& by) {
    std::size_t bytes = 0;
    for (auto const& each : pieces) bytes += padded(each.size());
    if (bytes > kept::slot_bytes - page_bytes) throw_error(errc::usage, "a state of {} is too large", format_bytes(bytes));
    forget_later(step);
    auto const which = take_slot();
    auto& head = map(which, page_bytes + bytes);
    kept::line_sums sums;
    std::byte* to = slots_[which].at + page_bytes;
    for (auto const& each : pieces) {
        auto const whole = each.size() / line_bytes * line_bytes;
        sums.copy(to, each.data(), whole);
        to += whole;
        if (whole == each.size()) continue;
        std::array<std::byte, line_bytes> last{};
        std::memcpy(last.data(), each.data() + whole, each.size() - whole);
        sums.copy(to, last.data(), line_bytes);
        to += line_bytes;
    }
    head.number = end_commit(commits_, which);
    head.step = step;
    head.bytes = bytes;
    head.sum = sums.value();
    head.by = by;
    auto wanted = control_ == nullptr ? 0 : control_->wanted.load();
    bool const is_wanted = wanted != 0 && step >= wanted && control_->wanted.compare_exchange_strong(wanted, 0);
    head.ready.store(is_wanted ? kept::held : kept::whole);
}

/// Maps the slot. Returns null if it holds no whole copy.
kept::head const* kept_state::find_whole(std::size_t which) {
    struct stat about {};
    if (::fstat(file_.get(), &about) != 0) throw_system("fstat", "of the state that is kept");
    auto const there = static_cast<std::uint64_t>(about.st_size), place = kept::place_of(part_, which);
    if (there < place + page_bytes) return nullptr;
    kept::head const* head = &map(which, std::max(slots_[which].bytes, page_bytes));
    auto const ready = head->ready.load();
    if (ready != kept::whole && ready != kept::held) return nullptr;
    if (head->bytes > std::min(kept::slot_bytes, there - place) - page_bytes) return note_damage(which);
    head = &map(which, std::max(slots_[which].bytes, static_cast<std::size_t>(page_bytes + head->bytes)));
    kept::line_sums sums;
    sums.add(slots_[which].at + page_bytes, head->bytes);
    return sums.value() == head->sum ? head : note_damage(which);
}

/// Warns once: otherwise ranks would begin at an older copy, or anew, and nobody would know why.
std::nullptr_t kept_state::note_damage(std::size_t which) {
    auto const& head = *reinterpret_cast<kept::head const*>(slots_[which].at);
    if (!std::exchange(damaged_[which], true))
        spdlog::warn("the copy of commit {} that this rank finds in memory is damaged, and is not used", head.step);
    return nullptr;
}

std::vector<kept_state::copy> kept_state::find() {
    struct numbered {
        std::uint64_t number;
        copy what;
    };
    std::vector<numbered> found;
    for (std::size_t which = 0; which < kept::slots; ++which)
        if (auto const* const one = find_whole(which))
            found.push_back({one->number, {one->step, {slots_[which].at + page_bytes, one->bytes}}});
    std::sort(found.begin(), found.end(), [](numbered const& a, numbered const& b) { return a.number > b.number; });
    std::vector<copy> all;
    for (auto const& one : found) all.push_back(one.what);
    return all;
}

}  // namespace muster
