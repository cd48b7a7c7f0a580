#include "launch/ranks/rank_stream.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/open_output_file.hpp"
#include "launch/ranks/rank_name.hpp"

namespace muster {

void output_pump::add(rank_stream& stream, std::function<void()> on_output) {
    watch(entries_.emplace_back(entry{&stream, std::move(on_output)}));
}

void output_pump::watch(entry& one) {
    if (one.stream->open()) loop_.watch_readable(one.stream->read_fd(), [this, &one] { on_readable(one); });
}

void output_pump::on_readable(entry& one) {
    auto& stream = *one.stream;
    one.on_output();
    if (stream.read_some(sink_) == stream_read::end) unwatch_ended(stream);
    if (!flush_pending_ && stream.awaits_flush()) {
        flush_pending_ = true;
        loop_.after(partial_patience, [this] { flush_partials(); });
    }
    if (!paused_ && sink_.congested()) {
        paused_ = true;
        unwatch_all();
    }
}

/// Takes the descriptor out of the loop before it is closed: a new process that has not yet started its program holds a copy,
/// which would wake the loop again and again and could no longer be removed.
void output_pump::unwatch_ended(rank_stream& stream) {
    loop_.unwatch(stream.read_fd());
    stream.close();
}

void output_pump::unwatch_all() {
    for (auto& each : entries_)
        if (each.stream->open()) loop_.unwatch(each.stream->read_fd());
}

void output_pump::flush_partials() {
    flush_pending_ = false;
    bool all = true;
    for (auto& each : entries_) all = each.stream->flush_some(sink_) && all;
    if (all) return;
    flush_pending_ = true;
    loop_.after(partial_patience, [this] { flush_partials(); });
}

void output_pump::resume() {
    if (!paused_ || sink_.congested()) return;
    paused_ = false;
    for (auto& each : entries_) watch(each);
}

void output_pump::close_streams_to(int target) {
    for (auto& each : entries_)
        if (each.stream->target() == target && each.stream->open()) unwatch_ended(*each.stream);
}

void output_pump::read_for_now(rank_stream& stream) {
    if (!stream.open()) return;
    stream.read_for_now(sink_);
    if (!stream.open()) unwatch_ended(stream);
}

void output_pump::finish() {
    unwatch_all();
    for (auto& each : entries_) {
        each.stream->read_all(sink_);
        each.stream->flush_partial(sink_);
    }
}

namespace {

constexpr std::size_t tail_bytes = 4096;
constexpr std::size_t longest_character = 4;  ///< in UTF-8

}  // namespace

std::string line_splitter::prefix() const {
    if (!format_.timestamp) return format_.tag;
    auto const now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    auto const seconds = std::chrono::floor<std::chrono::seconds>(now);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03} {}", fmt::localtime(std::chrono::system_clock::to_time_t(seconds)),
                       (now - seconds).count(), format_.tag);
}

void line_splitter::remember(std::string_view bytes) {
    if (bytes.size() >= tail_bytes) {
        tail_.assign(bytes.substr(bytes.size() - tail_bytes));
        return;
    }
    if (tail_.size() + bytes.size() > 2 * tail_bytes) tail_.erase(0, tail_.size() - (tail_bytes - bytes.size()));
    tail_ += bytes;
}

std::string line_splitter::push(std::string_view bytes) {
    if (keeps_tail_) remember(bytes);
    if (format_.raw && !format_.tagged()) return std::string(bytes);
    auto const last = bytes.rfind('\n');
    if (last == std::string_view::npos) {
        keep_partial(bytes);
        return partial_.size() > longest_line_bytes ? finish() : std::string();
    }
    std::string lines;
    if (!format_.tagged()) {
        lines = std::move(partial_);
        lines += bytes.substr(0, last + 1);
    } else {
        std::string const before = prefix();
        for (std::size_t start = 0, end = 0; start <= last; start = end + 1) {
            end = bytes.find('\n', start);
            lines += before;
            if (start == 0) lines += partial_;
            lines += bytes.substr(start, end + 1 - start);
        }
    }
    partial_.clear();
    has_return_ = waited_ = false;
    keep_partial(bytes.substr(last + 1));
    return lines;
}

void line_splitter::keep_partial(std::string_view bytes) {
    partial_ += bytes;
    has_return_ = has_return_ || bytes.find('\r') != std::string_view::npos;
}

/// Lines with other bytes stay whole.
bool line_splitter::is_bar() const noexcept {
    if (!has_return_) return false;
    auto const shows = [](char c) {
        return static_cast<unsigned char>(c) >= ' ' || c == '\r' || c == '\t' || c == '\b' || c == '\x1b';
    };
    if (!std::ranges::all_of(partial_, shows)) return false;
    auto const fault = not_utf8_at(partial_);
    return !fault || *fault + longest_character > partial_.size();  // the last character may be cut
}

std::string line_splitter::flush(bool terminal) {
    bool const waited = std::exchange(waited_, has_partial());
    if (!has_partial()) return {};
    if ((terminal && waited) || (is_bar() && (waited || partial_.front() == '\r'))) return finish();
    return {};
}

std::string line_splitter::finish() {
    if (partial_.empty()) return {};
    std::string line = format_.tagged() ? prefix() + partial_ + '\n' : std::move(partial_);
    partial_.clear();
    has_return_ = waited_ = false;
    return line;
}

std::string line_splitter::tail(std::size_t lines) const {
    if (lines == 0) return {};
    std::size_t position = tail_.size();
    if (position > 0 && tail_.back() == '\n') --position;
    for (std::size_t i = 0; i < lines; ++i) {
        auto const newline = position == 0 ? std::string::npos : tail_.rfind('\n', position - 1);
        if (newline == std::string::npos) return tail_;
        position = newline;
    }
    return tail_.substr(position + 1);
}

namespace fs = std::filesystem;

namespace {

constexpr std::size_t read_bytes = 65536;
constexpr int reads_for_now = 8;

/// Returns false if the file system did not take it all (full, over quota).
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

/// Returns whether a rank's folder contains only what muster put there.
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
    // A larger pipe lets a rank print 1 MiB without waiting for us; the kernel refuses more than the user's limit, which does no
    // harm.
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
        sink.write(lines_.destination(target_), lines_.finish(), this);
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
    metric_.take(bytes);
    sink.write(lines_.destination(target_), lines_.push(bytes), this);
    return stream_read::bytes;
}

bool rank_stream::flush_some(output_sink& sink) {
    sink.write_unfinished(lines_.destination(target_), lines_.flush(terminal_), this);
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
    for (auto const& folder : folder_entries(output_dir)) {
        auto const name = folder.filename().string();
        bool const of_spare = has_number_after(spare_prefix, name);
        if (!of_spare && (!has_number_after("rank.", name) || ours.contains(name))) continue;
        if (!holds_output_only(folder)) continue;
        for (auto const* file : {"stdout", "stderr"}) fs::remove(folder / file, fault);
        if (fs::remove(folder, fault) && !of_spare) ++removed;
    }
    return removed;
}

}  // namespace muster
