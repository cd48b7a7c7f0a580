#include "comm/exchange/observe/timeline.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/letters.hpp"
#include "base/log.hpp"
#include "base/process/start_thread.hpp"
#include "base/trace/rank_file.hpp"
#include "base/trust/open_output_file.hpp"

namespace muster {

namespace {

constexpr std::size_t flush_at = std::size_t{1} << 18;

std::string json_text(std::string_view text) {
    return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

timeline::timeline(int rank, int ranks, std::string host, int generation)
    : rank_(rank), ranks_(ranks), generation_(generation), host_(std::move(host)) {
    names_.push_back("\"\"");
    numbers_.emplace("", 0);
}

timeline::~timeline() {
    try {
        stop();
    } catch (std::exception const& problem) {
        spdlog::warn("timeline: {}", problem.what());
    }
}

std::uint32_t timeline::intern(std::string_view name) {
    std::scoped_lock const lock(names_guard_);
    auto const [found, is_new] = numbers_.try_emplace(std::string(name), static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(json_text(name));
    return found->second;
}

void timeline::start(std::string const& folder, clock_offset offset, bool mark_cycles) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    open(fmt::format("{}/{}", folder, name_of("timeline", {generation_, rank_})), offset, mark_cycles, false);
}

void timeline::start_file(std::string const& path, clock_offset offset, bool mark_cycles) {
    open(path, offset, mark_cycles, true);
}

void timeline::open(std::string const& path, clock_offset offset, bool mark_cycles, bool as_horovod) {
    stop();
    std::scoped_lock const lock(control_);
    path_ = path;
    as_horovod_ = as_horovod;
    fd_ = open_output_file(path_, "give a file of your own, in a folder that is there").release();
    if (ring_.empty()) ring_.resize(room);
    tail_.store(head_.load());
    buffer_ = "[\n";
    auto const meta = [&](std::string_view name, int tid, std::string const& args) {
        put(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", name, rank_, tid, args));
    };
    meta("process_name", 0, fmt::format(R"("name":{})", json_text(fmt::format("rank {} ({})", rank_, host_))));
    meta("process_sort_index", 0, fmt::format(R"("sort_index":{})", rank_));
    meta("thread_name", 1, R"("name":"collectives")");
    meta("thread_name", 0, R"("name":"rounds")");
    meta("muster_clock", 0,
         fmt::format(R"("generation":{},"rank":{},"ranks":{},"host":{},"process":{},"offset_us":{:.3f},"error_us":{:.3f})",
                     generation_, rank_, ranks_, json_text(host_), ::getpid(), offset.offset_us, offset.error_us));
    ending_ = false;
    marks_ = mark_cycles;
    writer_ = start_thread("for a timeline", [this] { write_events(); });
    running_.store(true, std::memory_order_release);
}

void timeline::stop() {
    std::scoped_lock const lock(control_);
    if (!writer_.joinable()) return;
    running_.store(false, std::memory_order_release);
    {
        std::scoped_lock const waking(wake_guard_);
        ending_ = true;
    }
    wake_.notify_all();
    writer_.join();
    // A last event follows the last comma, since the array must end with an event.
    buffer_ +=
        fmt::format(R"({{"ph":"M","name":"muster_end","pid":{},"tid":0,"args":{{"dropped":{}}}}})", rank_, dropped()) + "\n]\n";
    drain();
    ::close(std::exchange(fd_, -1));
}

bool timeline::add(trace_event const& event) noexcept {
    auto const head = head_.load(std::memory_order_relaxed);
    if (head - tail_.load(std::memory_order_acquire) >= room) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    ring_[head % room] = event;
    head_.store(head + 1, std::memory_order_release);
    return true;
}

void timeline::write_events() {
    for (;;) {
        bool const last = ending_;
        auto tail = tail_.load(std::memory_order_relaxed);
        for (auto const head = head_.load(std::memory_order_acquire); tail != head; ++tail) {
            put(line_of(ring_[tail % room]));
            tail_.store(tail + 1, std::memory_order_release);
        }
        drain();
        if (last) return;
        std::unique_lock lock(wake_guard_);
        wake_.wait_for(lock, std::chrono::milliseconds(20), [&] { return ending_.load(); });
    }
}

void timeline::put(std::string const& line) {
    buffer_ += line;
    buffer_ += ",\n";
    if (buffer_.size() >= flush_at) drain();
}

void timeline::drain() {
    std::size_t written = 0;
    while (fd_ >= 0 && written < buffer_.size()) {
        auto const now = ::write(fd_, buffer_.data() + written, buffer_.size() - written);
        if (now < 0 && errno == EINTR) continue;
        if (now < 0) {
            spdlog::warn("timeline: write {}: {}; the rest of it is lost", path_, std::strerror(errno));
            ::close(std::exchange(fd_, -1));
            break;
        }
        written += static_cast<std::size_t>(now);
    }
    buffer_.clear();
}

std::string timeline::line_of(trace_event const& event) {
    std::string name, detail;
    {
        std::scoped_lock const lock(names_guard_);
        name = names_.at(event.name);
        detail = names_.at(event.detail);
    }
    double const begin = static_cast<double>(event.begin_ns) / 1e3;
    double const length = static_cast<double>(event.end_ns - event.begin_ns) / 1e3;
    std::string const operation = upper_case(detail);  // with its quotation marks
    auto const async = [&](std::string_view what, std::string_view of_horovod) {
        return fmt::format(
            R"({{"ph":"b","cat":"tensor","name":{0},"id":"{1}","pid":{2},"tid":0,"ts":{3:.3f},"args":{{"phase":"{4}","operation":{5},"bytes":{6},"tensor":{8}}}}},)"
            "\n"
            R"({{"ph":"e","cat":"tensor","name":{0},"id":"{1}","pid":{2},"tid":0,"ts":{7:.3f}}})",
            as_horovod_ ? fmt::format("\"{}\"", of_horovod) : fmt::format("\"{} {}\"", what, name.substr(1, name.size() - 2)),
            event.id, rank_, begin, what, detail, event.bytes, begin + length, name);
    };
    auto const span = [&](std::string const& what) {
        return fmt::format(
            R"({{"ph":"X","cat":"collective","name":{},"pid":{},"tid":1,"ts":{:.3f},"dur":{:.3f},"args":{{"tensor":{},"bytes":{}}}}})",
            what, rank_, begin, length, name, event.bytes);
    };
    switch (event.kind) {
        case trace_kind::negotiate: return async("NEGOTIATE", "NEGOTIATE_" + operation.substr(1, operation.size() - 2));
        case trace_kind::queue: return async("QUEUE", "QUEUE");
        case trace_kind::pack: return span(as_horovod_ ? "\"MEMCPY_IN_FUSION_BUFFER\"" : "\"PACK\"");
        case trace_kind::collective: return span(as_horovod_ ? operation : detail);
        case trace_kind::unpack: return span(as_horovod_ ? "\"MEMCPY_OUT_FUSION_BUFFER\"" : "\"UNPACK\"");
        case trace_kind::cycle: break;
    }
    return fmt::format(R"({{"ph":"X","cat":"cycle","name":"{}","pid":{},"tid":0,"ts":{:.3f},"dur":{:.3f}}})",
                       as_horovod_ ? "CYCLE_START" : "ROUND", rank_, begin, length);
}

clock_offset estimate_offset(std::span<clock_reading const> readings) noexcept {
    if (readings.empty()) return {};
    std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    for (auto const& each : readings) {
        least = std::max(least, each.before_there - each.after_here);
        most = std::min(most, each.after_there - each.before_here);
    }
    double const low = static_cast<double>(least) / 1e3, high = static_cast<double>(most) / 1e3;
    return {(low + high) / 2, (high - low) / 2};
}

}  // namespace muster
