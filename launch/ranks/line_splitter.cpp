#include "launch/ranks/line_splitter.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::size_t tail_bytes = 4096;
constexpr std::size_t longest_character = 4;  ///< of UTF-8

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

/// Lines of other bytes stay whole, whichever these are.
bool line_splitter::is_bar() const noexcept {
    if (!has_return_) return false;
    auto const shows = [](char c) {
        return static_cast<unsigned char>(c) >= ' ' || c == '\r' || c == '\t' || c == '\b' || c == '\x1b';
    };
    if (!std::all_of(partial_.begin(), partial_.end(), shows)) return false;
    auto const fault = not_utf8_at(partial_);
    return !fault || *fault + longest_character > partial_.size();  // the last one may be cut
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

}  // namespace muster
