#include "io/arrays/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <vector>

#include "base/throw_error.hpp"
#include "io/dataset/file_bytes.hpp"

namespace muster {

namespace {

constexpr std::size_t buffer_bytes = 256 * 1024;
constexpr std::uint64_t largest_ratio = 1032;  // deflate's best: 258 bytes from two bits

/// A link is there for who lists the folder, so its target is named.
[[noreturn]] void refuse_to_open(std::string const& path, int code) {
    std::error_code none;
    auto const target = std::filesystem::read_symlink(path, none);
    if (code == ENOENT && !none)
        throw_error(errc::not_found, "{}: is a link to {}, which is not there; mend or remove the link", path, target.string());
    throw_system("open", path, code, code == ENOENT || code == ELOOP ? "check the path" : "check its permissions");
}

}  // namespace

unique_fd open_regular(std::string const& path, std::uint64_t& bytes) {
    unique_fd fd(
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // nonblocking: a FIFO must not hang us before it is refused
    if (!fd) refuse_to_open(path, errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0) throw_system("fstat", path);
    if (!S_ISREG(status.st_mode))
        throw_error(errc::invalid_data, "{}: is not a regular file; give the file itself, no folder, pipe or device", path);
    bytes = static_cast<std::uint64_t>(status.st_size);
    return fd;
}

/// zlib's state and the compressed bytes it has not taken yet.
struct byte_source::inflater {
    explicit inflater(bool bare) : is_bare(bare) {
        if (int const code = inflateInit2(&stream, bare ? -15 : 15 + 16); code != Z_OK)  // 16: gzip with its CRC, nothing else
            throw library_error("zlib", "inflateInit2", code, "no memory");
    }
    ~inflater() { inflateEnd(&stream); }
    inflater(inflater const&) = delete;
    inflater& operator=(inflater const&) = delete;

    z_stream stream{};
    bool is_bare;  ///< one deflate stream, as in a zip archive, without a header
    std::uint32_t crc = 0;
    std::vector<std::uint8_t> input = std::vector<std::uint8_t>(buffer_bytes);
    bool ended = false;      ///< the last member is complete and nothing follows it
    bool in_member = false;  ///< some of a member is read, but not its end
};

byte_source::byte_source(std::string path) : path_(std::move(path)), fd_(open_regular(path_, file_bytes_)) {
    std::array<std::uint8_t, 2> magic{};
    if (read_fully(fd_.get(), path_, 0, magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b)
        inflater_ = std::make_unique<inflater>(false);
    ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

byte_source::byte_source(file_region const& region) : path_(region.path), fd_(open_regular(path_, file_bytes_)), region_(region) {
    if (region.offset > file_bytes_ || region.stored_bytes > file_bytes_ - region.offset)
        throw_error(errc::invalid_data,
                    "{}: {}: its {} bytes at offset {} reach beyond the end of the file at {}; copy or download it again", path_,
                    region.name, region.stored_bytes, region.offset, file_bytes_);
    file_offset_ = region.offset;
    file_bytes_ = region.offset + region.stored_bytes;  // the rest of the file is none of its
    if (region.deflated) inflater_ = std::make_unique<inflater>(true);
}

byte_source::byte_source(byte_source&&) noexcept = default;
byte_source& byte_source::operator=(byte_source&&) noexcept = default;
byte_source::~byte_source() = default;

std::string byte_source::name() const {
    return region_ ? fmt::format("{}: {}", path_, region_->name) : path_;
}

std::optional<std::uint64_t> byte_source::size() const noexcept {
    if (region_) return region_->bytes;
    if (compressed()) return std::nullopt;
    return file_bytes_;
}

std::uint64_t byte_source::size_limit() const noexcept {
    std::uint64_t const stored = region_ ? region_->stored_bytes : file_bytes_;
    if (!compressed()) return stored;
    std::uint64_t const most = std::numeric_limits<std::uint64_t>::max();
    return stored > most / largest_ratio ? most : stored * largest_ratio;
}

std::size_t byte_source::read(std::span<std::uint8_t> out) {
    std::size_t const got = compressed() ? read_compressed(out) : read_plain(out);
    offset_ += got;
    return got;
}

std::uint64_t byte_source::skip(std::uint64_t bytes) {
    if (!compressed()) {
        std::uint64_t const step = std::min(bytes, file_bytes_ - std::min(file_bytes_, file_offset_));
        file_offset_ += step;
        offset_ += step;
        return step;
    }
    std::vector<std::uint8_t> dropped(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, buffer_bytes)));
    std::uint64_t done = 0;
    while (done < bytes) {
        std::size_t const ask = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - done, dropped.size()));
        std::size_t const got = read({dropped.data(), ask});
        done += got;
        if (got < ask) break;
    }
    return done;
}

std::size_t byte_source::read_plain(std::span<std::uint8_t> out) {
    out = out.first(
        static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), file_bytes_ - std::min(file_bytes_, file_offset_))));
    std::size_t const got = read_fully(fd_.get(), path_, file_offset_, out);
    file_offset_ += got;
    return got;
}

std::size_t byte_source::read_compressed(std::span<std::uint8_t> out) {
    z_stream& stream = inflater_->stream;
    auto const damaged = [&](std::size_t done, std::string_view what, std::string_view advice) {
        throw_error(errc::invalid_data, "{}: {}: {} at compressed offset {}, after {} uncompressed bytes; {}", path_,
                    region_ ? "zip" : "gzip", what, file_offset_ - stream.avail_in, offset_ + done, advice);
    };
    std::size_t done = 0;
    while (done < out.size() && !inflater_->ended) {
        if (stream.avail_in == 0) {
            std::size_t const left = static_cast<std::size_t>(
                std::min<std::uint64_t>(inflater_->input.size(), file_bytes_ - std::min(file_bytes_, file_offset_)));
            std::size_t const got = read_fully(fd_.get(), path_, file_offset_, std::span(inflater_->input).first(left));
            file_offset_ += got;
            stream.next_in = inflater_->input.data();
            stream.avail_in = static_cast<uInt>(got);
            if (got == 0 && inflater_->in_member)
                damaged(done, "the file ends inside its compressed data", "copy or download it again");
            if (got == 0) inflater_->ended = true;
            continue;
        }
        std::size_t const ask = std::min<std::size_t>(out.size() - done, 1u << 30);
        stream.next_out = out.data() + done;
        stream.avail_out = static_cast<uInt>(ask);
        inflater_->in_member = true;
        int const code = inflate(&stream, Z_NO_FLUSH);
        std::size_t const made = ask - stream.avail_out;
        if (region_) {
            inflater_->crc = static_cast<std::uint32_t>(::crc32_z(inflater_->crc, out.data() + done, made));
            if (offset_ + done + made > region_->bytes)
                damaged(done,
                        fmt::format("{}: holds more than the {} bytes that the archive says", region_->name, region_->bytes),
                        "the archive is damaged: make it again");
        }
        done += made;
        if (code == Z_STREAM_END && inflater_->is_bare) {
            inflater_->in_member = false;
            inflater_->ended = true;
            if (inflater_->crc != region_->crc || offset_ + done != region_->bytes)
                damaged(done, fmt::format("{}: its CRC-32 or its length is not what the archive says", region_->name),
                        "the archive is damaged: copy or download it again");
        } else if (code == Z_STREAM_END) {  // another member may follow: a gzip file is a list of them
            inflater_->in_member = false;
            inflateReset(&stream);
        } else if (code != Z_OK && code != Z_BUF_ERROR) {
            damaged(done, stream.msg != nullptr ? stream.msg : "damaged data", "the file is damaged: copy or download it again");
        }
    }
    return done;
}

}  // namespace muster
