#include "launch/ranks/line_splitter.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

namespace muster {

namespace {

constexpr std::size_t tail_bytes = 4096;

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
    fresh_ = true;
    if (format_.raw && !format_.tagged()) return std::string(bytes);
    auto const last = bytes.rfind('\n');
    if (last == std::string_view::npos) {
        partial_ += bytes;
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
    partial_.assign(bytes.substr(last + 1));
    return lines;
}

std::string line_splitter::finish() {
    if (partial_.empty()) return {};
    std::string line = format_.tagged() ? prefix() + partial_ + '\n' : std::move(partial_);
    partial_.clear();
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
