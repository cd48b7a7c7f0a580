#include "io/convert/divide_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "base/letters.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

constexpr std::size_t window_bytes = std::size_t{8} << 20;
constexpr std::size_t gap_bytes = std::size_t{64} << 10;  ///< read over rather than left out: one read is faster than two
constexpr std::size_t word_bits = 64;

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
std::uint64_t next_number(std::uint64_t& state) noexcept {
    std::uint64_t z = state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/// Returns a number from 0 to `below` - 1.
std::size_t next_below(std::uint64_t& state, std::size_t below) noexcept {
    auto const share = static_cast<double>(next_number(state) >> 11) * 0x1p-53;
    return std::min(below - 1, static_cast<std::size_t>(share * static_cast<double>(below)));
}

bool is_split_name(std::string_view name) noexcept {
    return !name.empty() && std::ranges::all_of(name, [](char c) { return is_alphanumeric(c) || c == '_' || c == '-'; });
}

class selected_source final : public sample_source {
  public:
    selected_source(std::unique_ptr<sample_source> whole, row_selection rows, bool tells)
        : whole_(std::move(whole)), rows_(std::move(rows)), tells_(tells) {
        take_over();
    }

    std::vector<std::string> files() const override { return whole_->files(); }

    void read(hyperslab rows, std::span<std::uint8_t> images, std::span<std::uint32_t> labels) override {
        auto const size = sample_bytes();
        for (std::size_t at = rows.first; at < rows.end();) {
            auto const window = window_from(at, rows.end());
            images_.resize(window.count * size);
            labels_.resize(window.count);
            whole_->read(window, images_, labels_);
            for (; at < rows.end() && rows_.row(at) < window.end(); ++at) {
                auto const from = rows_.row(at) - window.first, to = at - rows.first;
                std::memcpy(images.data() + to * size, images_.data() + from * size, size);
                if (!labels.empty()) labels[to] = labels_[from];
            }
            read_to_ = window.end();
        }
        take_over();
    }

    /// Looks from the last sample of all at what follows it: the samples between belong to other splits.
    void finish() override {
        auto const size = sample_bytes();
        auto const step = std::max<std::size_t>(1, window_bytes / size);
        for (auto const all = whole_->facts().samples; read_to_ < all;) {
            hyperslab const rest{read_to_, std::min(step, all - read_to_)};
            images_.resize(rest.count * size);
            labels_.resize(rest.count);
            whole_->read(rest, images_, labels_);
            read_to_ = rest.end();
        }
        whole_->finish();
        take_over();
    }

    label_scan scan_labels() override { return whole_->scan_labels(); }

    void take_targets() override {
        whole_->take_targets();
        take_over();
    }

    void order_columns(std::vector<std::string> const& names) override {
        whole_->order_columns(names);
        take_over();
    }

    void look_at(hyperslab rows, std::span<std::int32_t> damaged) override {
        expect(damaged.empty(), "damaged samples are left out before a source is divided");
        for (std::size_t at = rows.first; at < rows.end();) {
            auto const window = window_from(at, rows.end());
            whole_->look_at(window, {});
            while (at < rows.end() && rows_.row(at) < window.end()) ++at;
        }
        take_over();
    }

    [[noreturn]] void fail_label(std::size_t sample, std::uint32_t label, std::size_t classes) const override {
        whole_->fail_label(rows_.row(sample), label, classes);
        std::abort();  // not reached: a virtual function is not known to throw
    }

  private:
    std::size_t sample_bytes() const { return std::max<std::size_t>(1, facts_.shape.elements() * bytes_of(facts_.type)); }

    /// Rows of the whole that hold chosen ones from the nth on, without long gaps.
    hyperslab window_from(std::size_t nth, std::size_t end) const {
        auto const size = sample_bytes();
        auto const first = rows_.row(nth);
        auto last = first;
        for (auto next = nth + 1; next < end; ++next) {
            auto const row = rows_.row(next);
            if ((row - last - 1) * size > gap_bytes || (row + 1 - first) * size > window_bytes) break;
            last = row;
        }
        return {first, last + 1 - first};
    }

    /// The whole's facts and notes have changed.
    void take_over() {
        facts_ = whole_->facts();
        facts_.samples = rows_.count();
        auto const& notes = whole_->notes();
        notes_.turned = notes.turned;
        notes_.rounded = notes.rounded;
        if (!tells_) return;
        notes_.left_out = notes.left_out;
        notes_.damaged = notes.damaged;
        for (; words_ < notes.words.size(); ++words_) notes_.words.push_back(notes.words[words_]);
    }

    std::unique_ptr<sample_source> whole_;
    row_selection rows_;
    bool tells_;
    std::size_t words_ = 0;    ///< of the whole's notes that are this one's too
    std::size_t read_to_ = 0;  ///< the row behind the last one that was read
    std::vector<std::uint8_t> images_;
    std::vector<std::uint32_t> labels_;
};

}  // namespace

std::vector<split_part> parse_split_parts(std::string_view text) {
    std::vector<split_part> parts;
    std::size_t offset = 0;
    for (auto const entry : split(text, ',')) {
        auto const fail = [&](std::size_t at, std::string const& why) {
            throw parse_error("--split", text, offset + at, why, errc::usage);
        };
        auto const equals = entry.find('=');
        auto const name = trim(entry.substr(0, equals));
        if (equals == std::string_view::npos || !is_split_name(name))
            fail(0, "no split and its fraction; write them as train=0.8,val=0.2, with names of letters, digits, _ and -");
        auto const fraction = parse_real(trim(entry.substr(equals + 1)));
        if (!fraction || !(*fraction > 0 && *fraction < 1))
            fail(equals + 1, "a fraction lies between 0 and 1, as in train=0.8,val=0.2");
        if (std::ranges::find(parts, name, &split_part::name) != parts.end())
            fail(0, fmt::format("{} is there twice; give each split once", name));
        parts.push_back({std::string(name), *fraction});
        offset += entry.size() + 1;
    }
    double sum = 0;
    for (auto const& part : parts) sum += part.fraction;
    if (std::abs(sum - 1) > 1e-6)
        throw_error(errc::usage,
                    "--split {}: the fractions make {:.6g}, and each sample has one split; give fractions that make 1, as in "
                    "train=0.8,val=0.2",
                    text, sum);
    return parts;
}

std::vector<std::size_t> counts_of_parts(std::vector<split_part> const& parts, std::size_t samples) {
    std::vector<std::size_t> counts;
    double sum = 0;
    std::size_t dealt = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        sum += parts[i].fraction;
        auto const to = i + 1 == parts.size()
                            ? samples
                            : std::min(samples, static_cast<std::size_t>(std::llround(sum * static_cast<double>(samples))));
        counts.push_back(to - dealt);
        dealt = to;
        if (counts.back() == 0)
            throw_error(errc::usage, "--split: {}={} of {} is none; give a larger fraction", parts[i].name, parts[i].fraction,
                        counted(static_cast<std::int64_t>(samples), "sample"));
    }
    return counts;
}

row_selection::row_selection(std::vector<bool> const& chosen) : bits_((chosen.size() + word_bits - 1) / word_bits) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
        if (chosen[i]) bits_[i / word_bits] |= std::uint64_t{1} << (i % word_bits);
    for (auto const word : bits_) {
        before_.push_back(count_);
        count_ += static_cast<std::size_t>(std::popcount(word));
    }
}

std::size_t row_selection::row(std::size_t nth) const noexcept {
    auto const word = static_cast<std::size_t>(std::ranges::upper_bound(before_, nth) - before_.begin()) - 1;
    auto bits = bits_[word];
    for (auto left = nth - before_[word]; left > 0; --left) bits &= bits - 1;
    return word * word_bits + static_cast<std::size_t>(std::countr_zero(bits));
}

std::vector<row_selection> choose_rows(std::vector<std::size_t> const& counts, std::uint64_t seed) {
    auto left = counts;
    auto const samples = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    std::vector<std::vector<bool>> chosen(counts.size(), std::vector<bool>(samples));
    for (std::size_t row = 0; row < samples; ++row) {
        auto number = next_below(seed, samples - row);
        std::size_t part = 0;
        while (number >= left[part]) number -= left[part++];
        --left[part];
        chosen[part][row] = true;
    }
    return {chosen.begin(), chosen.end()};
}

std::unique_ptr<sample_source> selected_rows(std::unique_ptr<sample_source> whole, row_selection rows, bool tells) {
    return std::make_unique<selected_source>(std::move(whole), std::move(rows), tells);
}

}  // namespace muster
