#include "comm/membership/kept_state.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "pmix/member_message.hpp"

namespace muster {

namespace {

constexpr std::uint64_t magic = 0x31'74'73'6b'72'74'73'6dULL;  // "mstrkst1"
constexpr std::uint64_t half_bytes = std::uint64_t{1} << 41, most_parts = std::uint64_t{1} << 20;
constexpr std::size_t head_bytes = 4096, line_bytes = 64;

/// Checksum of lines of 64 bytes. Sums and sums of sums: a line that is missing, another's or in another place changes them.
class line_sums {
  public:
    void add(std::byte const* from, std::size_t bytes) noexcept {
        for (std::size_t at = 0; at < bytes; at += line_bytes) {
            std::array<std::uint64_t, 8> line;
            std::memcpy(line.data(), from + at, line_bytes);
            for (std::size_t i = 0; i < 8; ++i) sum_[i] += line[i];
            for (std::size_t i = 0; i < 8; ++i) sums_[i] += sum_[i];
        }
    }

    /// Copies whole lines to a multiple of 64, with stores that need not read what was there, and so no slower than memcpy.
    void copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
#ifdef __SSE2__
        __m128i sum[4], sums[4];
        std::memcpy(sum, sum_.data(), sizeof sum);
        std::memcpy(sums, sums_.data(), sizeof sums);
        for (std::size_t at = 0; at < bytes; at += line_bytes)
            for (std::size_t i = 0; i < 4; ++i) {
                auto const part = _mm_loadu_si128(reinterpret_cast<__m128i const*>(from + at) + i);
                _mm_stream_si128(reinterpret_cast<__m128i*>(to + at) + i, part);
                sum[i] = _mm_add_epi64(sum[i], part);
                sums[i] = _mm_add_epi64(sums[i], sum[i]);
            }
        _mm_sfence();
        std::memcpy(sum_.data(), sum, sizeof sum);
        std::memcpy(sums_.data(), sums, sizeof sums);
#else
        std::memcpy(to, from, bytes);
        add(to, bytes);
#endif
    }
    std::uint64_t value() const noexcept {
        std::uint64_t all = magic;
        for (std::size_t i = 0; i < 8; ++i) all = (all ^ sum_[i]) * 0x9e3779b97f4a7c15ULL + sums_[i];
        return all;
    }

  private:
    std::array<std::uint64_t, 8> sum_{}, sums_{};
};

}  // namespace

struct kept_state::header {
    std::atomic<std::uint64_t> ready;  ///< magic, or the copy is not whole
    std::uint64_t number, step, bytes, sum;
};

unique_fd make_kept_memory() {
    unique_fd file(::memfd_create("muster-state", MFD_CLOEXEC));
    if (!file) throw_system("memfd_create", "for the state that is kept");
    return file;
}

kept_state::kept_state(std::string_view place) {
    if (place.empty()) {
        file_ = make_kept_memory();
        return;
    }
    auto const colon = place.find(':');
    auto const part = parse_integer(place.substr(0, colon));
    if (!part || *part < 0 || static_cast<std::uint64_t>(*part) >= most_parts || colon == std::string_view::npos)
        throw error(errc::usage, fmt::format("{}={} is not PART:FILE; leave it to muster run --keep-state",
                                             elastic::kept_state_variable, place));
    from_ = static_cast<std::uint64_t>(*part) * 2 * half_bytes;
    rlimit files{};
    if (::getrlimit(RLIMIT_FSIZE, &files) == 0 &&
        files.rlim_cur != RLIM_INFINITY)  // it would end the process: parts lie far apart
        throw error(errc::unavailable,
                    "the state cannot be kept where file sizes are limited; run ulimit -f unlimited, or leave out --keep-state");
    std::string const path(place.substr(colon + 1));
    file_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file_) throw_system("open", path + ", the state that is kept");
    for (std::size_t which = 0; which < 2; ++which)
        if (auto const* const one = find_whole(which); one != nullptr && one->number >= commits_)
            commits_ = one->number, newest_ = which;
}

kept_state::~kept_state() {
    for (auto const& one : halves_)
        if (one.at != nullptr) ::munmap(one.at, one.bytes);
}

std::uint64_t kept_state::place_of(std::size_t which) const noexcept {
    return from_ + which * half_bytes;
}

kept_state::header& kept_state::map(std::size_t which, std::size_t bytes) {
    auto& one = halves_.at(which);
    if (one.bytes < bytes) {
        auto const place = static_cast<off_t>(place_of(which));
        // Takes the memory now: a write to what is not there would end the process.
        if (::fallocate(file_.get(), 0, place, static_cast<off_t>(bytes)) != 0)
            throw_system("fallocate", fmt::format("{} for the state that is kept", format_bytes(bytes)));
        void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), place);
        if (at == MAP_FAILED) throw_system("mmap", fmt::format("{} of the state that is kept", format_bytes(bytes)));
        if (one.at != nullptr) ::munmap(one.at, one.bytes);
        one = {static_cast<std::byte*>(at), bytes};
    }
    return *reinterpret_cast<header*>(one.at);
}

void kept_state::commit(std::uint64_t step, std::span<std::span<std::byte const> const> pieces) {
    std::size_t bytes = 0;
    for (auto const& each : pieces) bytes += padded(each.size());
    if (bytes > half_bytes - head_bytes) throw error(errc::usage, fmt::format("a state of {} is too large", format_bytes(bytes)));
    auto const which = 1 - newest_;
    header& head = map(which, head_bytes + bytes);
    head.ready.store(0);
    line_sums sums;
    std::byte* to = halves_[which].at + head_bytes;
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
    head.number = ++commits_;
    head.step = step;
    head.bytes = bytes;
    head.sum = sums.value();
    head.ready.store(magic);
    newest_ = which;
}

/// Null where it is none. Maps it.
kept_state::header const* kept_state::find_whole(std::size_t which) {
    struct stat about {};
    if (::fstat(file_.get(), &about) != 0) throw_system("fstat", "of the state that is kept");
    auto const there = static_cast<std::uint64_t>(about.st_size), place = place_of(which);
    if (there < place + head_bytes) return nullptr;
    header const* head = &map(which, std::max(halves_[which].bytes, head_bytes));
    if (head->ready.load() != magic || head->bytes > std::min(half_bytes, there - place) - head_bytes) return nullptr;
    head = &map(which, std::max(halves_[which].bytes, static_cast<std::size_t>(head_bytes + head->bytes)));
    line_sums sums;
    sums.add(halves_[which].at + head_bytes, head->bytes);
    return sums.value() == head->sum ? head : nullptr;
}

std::vector<kept_state::copy> kept_state::find() {
    std::vector<copy> found;
    for (auto const which : {newest_, 1 - newest_})
        if (auto const* const one = find_whole(which)) found.push_back({one->step, {halves_[which].at + head_bytes, one->bytes}});
    return found;
}

}  // namespace muster
