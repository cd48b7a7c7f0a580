#include "launch/ranks/rank_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/process/files.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/ranks/rank_name.hpp"

namespace muster {

namespace fs = std::filesystem;

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

constexpr std::string_view hint = "check --output-dir";

constexpr std::string_view spare_prefix = "spare.";

std::string rank_folder(int rank, int world_size) {
    std::size_t const width = std::max<std::size_t>(2, std::to_string(world_size - 1).size());
    return fmt::format("rank.{:0{}}", rank, width);
}

bool has_number_after(std::string_view prefix, std::string const& name) {
    return name.starts_with(prefix) && name.size() >= prefix.size() + 2 &&
           name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

/// What a rank's folder holds when muster made it and nobody put anything else there.
bool holds_output_only(fs::path const& folder) {
    std::error_code fault;
    if (fs::symlink_status(folder, fault).type() != fs::file_type::directory) return false;
    for (auto const& entry : fs::directory_iterator(folder, fault)) {
        auto const name = entry.path().filename();
        if ((name != "stdout" && name != "stderr") || entry.symlink_status(fault).type() != fs::file_type::regular) return false;
    }
    return !fault;
}

}  // namespace

rank_stream::rank_stream(int target, line_format how, output_file file)
    : target_(target), terminal_(::isatty(target) == 1), lines_(std::move(how)), file_(std::move(file)) {
    auto [read_end, write_end] = make_pipe();
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    // A larger pipe lets a rank print 1 MiB without waiting for us; more than the user's limit is refused, which does no harm.
    ::fcntl(read_end.get(), F_SETPIPE_SZ, 1 << 18);
    read_ = std::move(read_end);
    write_ = std::move(write_end);
}

stream_read rank_stream::read_some(output_sink& sink) {
    thread_local std::array<char, read_bytes> buffer;
    ssize_t n = 0;
    do n = ::read(read_.get(), buffer.data(), buffer.size());
    while (n < 0 && errno == EINTR);
    if (n < 0) return errno == EAGAIN ? stream_read::nothing : stream_read::end;
    if (n == 0) {
        sink.write(target_, lines_.finish(), this);
        ended_ = true;
        return stream_read::end;
    }
    std::string_view const bytes(buffer.data(), static_cast<std::size_t>(n));
    if (file_.fd && !write_file(file_.fd.get(), bytes)) {
        file_fault_ = fmt::format("cannot write {}: {}; the rest is only passed on: {}", file_.name, std::strerror(errno),
                                  errno == EFBIG ? too_large_hint : "free space there");
        sink.note(fmt::format("muster: error: {}\n", file_fault_));
        file_.fd.reset();
    }
    sink.write(target_, lines_.push(bytes), this);
    return stream_read::bytes;
}

bool rank_stream::flush_some(output_sink& sink) {
    sink.write_unfinished(target_, lines_.flush(terminal_), this);
    return !awaits_flush();
}

void rank_stream::read_for_now(output_sink& sink) {
    for (int i = 0; i < reads_for_now && open(); ++i)
        if (read_some(sink) != stream_read::bytes) return;
}

void rank_stream::read_all(output_sink& sink) {
    while (open() && read_some(sink) == stream_read::bytes) {
    }
}

line_format output_format(bool tag, bool timestamp, identity const& who, int generation, int spare) {
    line_format how;
    if (tag)
        how.tag = fmt::format("[{}:{}{}] ", who.host, spare < 0 ? std::to_string(who.rank) : fmt::format("spare {}", spare),
                              generation < 0 ? "" : fmt::format(" g{}", generation));
    how.timestamp = timestamp;
    how.raw = who.world_size == 1 && spare < 0;
    return how;
}

output_files make_output_files(std::string const& output_dir, identity const& who, int spare) {
    if (output_dir.empty()) return {};
    auto const own = spare < 0 ? rank_folder(who.rank, who.world_size) : fmt::format("{}{:02}", spare_prefix, spare);
    auto const whose = spare < 0 ? name_of_rank(who.rank, who.host, -1, {}) : name_of_spare(spare, who.host);
    output_folder const folder(fmt::format("{}/{}", output_dir, own), hint);
    auto const file = [&](char const* name) {
        return output_file{folder.open_file(name, hint), fmt::format("the output of {} to {}/{}", whose, folder.path(), name)};
    };
    return {file("stdout"), file("stderr")};
}

int clear_former_ranks(std::string const& output_dir, int world_size) {
    if (output_dir.empty()) return 0;
    std::set<std::string> ours;
    for (int rank = 0; rank < world_size; ++rank) ours.insert(rank_folder(rank, world_size));
    int removed = 0;
    std::error_code fault;
    std::vector<fs::path> former;
    for (auto const& entry : fs::directory_iterator(output_dir, fault)) {
        auto const name = entry.path().filename().string();
        if (has_number_after(spare_prefix, name) || (has_number_after("rank.", name) && !ours.contains(name)))
            former.push_back(entry.path());
    }
    for (auto const& folder : former) {
        if (!holds_output_only(folder)) continue;
        for (auto const* name : {"stdout", "stderr"}) fs::remove(folder / name, fault);
        if (fs::remove(folder, fault) && !folder.filename().string().starts_with(spare_prefix)) ++removed;
    }
    return removed;
}

}  // namespace muster
