#include "launch/ranks/rank_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace muster {

namespace {

constexpr std::size_t read_bytes = 65536;
constexpr int reads_for_now = 8;

/// False if the file system did not take it all (full, over quota).
bool write_file(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        auto const n = ::write(fd, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
}

}  // namespace

rank_stream::rank_stream(int target, line_format how, std::string const& file_path)
    : target_(target), terminal_(::isatty(target) == 1), lines_(std::move(how)) {
    auto [read_end, write_end] = make_pipe();
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    // A larger pipe lets a rank print 1 MiB without waiting for us; more than the user's limit is refused, which does no harm.
    ::fcntl(read_end.get(), F_SETPIPE_SZ, 1 << 18);
    read_ = std::move(read_end);
    write_ = std::move(write_end);
    if (file_path.empty()) return;
    file_.reset(::open(file_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file_) throw_system("open", file_path, 0, "check --output-dir");
}

bool rank_stream::read_some(output_writer& writer) {
    thread_local std::array<char, read_bytes> buffer;
    auto const n = ::read(read_.get(), buffer.data(), buffer.size());
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) {
        writer.write(target_, lines_.finish());
        read_.reset();
        return false;
    }
    std::string_view const bytes(buffer.data(), static_cast<std::size_t>(n));
    if (file_ && !write_file(file_.get(), bytes)) {
        spdlog::error("cannot write a rank's output to its file in --output-dir: {}; it goes on to the terminal only",
                      std::strerror(errno));
        file_.reset();
    }
    fresh_ = true;
    writer.write(target_, lines_.push(bytes));
    return true;
}

bool rank_stream::flush_stale_partial(output_writer& writer) {
    if (!awaits_flush()) return true;
    if (std::exchange(fresh_, false)) return false;
    writer.write(target_, lines_.finish());
    return true;
}

void rank_stream::read_for_now(output_writer& writer) {
    for (int i = 0; i < reads_for_now && open(); ++i)
        if (!read_some(writer)) return;
}

void rank_stream::read_all(output_writer& writer) {
    while (open()) {
        errno = 0;
        if (!read_some(writer) || errno == EAGAIN) return;
    }
}

line_format output_format(bool tag, bool timestamp, identity const& who) {
    line_format how;
    if (tag) how.tag = fmt::format("[{}:{}] ", who.host, who.rank);
    how.timestamp = timestamp;
    how.raw = who.world_size == 1;
    return how;
}

std::string make_rank_dir(std::string const& output_dir, int rank, int world_size) {
    std::size_t const width = std::max<std::size_t>(2, std::to_string(world_size - 1).size());
    auto const path = fmt::format("{}/rank.{:0{}}", output_dir, rank, width);
    std::error_code fault;
    std::filesystem::create_directories(path, fault);
    if (fault) throw error(errc::io, fmt::format("cannot make {}: {}; check --output-dir", path, fault.message()));
    return path;
}

}  // namespace muster
