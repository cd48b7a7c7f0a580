#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

constexpr std::size_t most_digits = 18;

/// "n" and "007" of "n007": what lies before the last number of a name that ends in one, and the number as written.
struct numbered {
    std::string_view prefix;
    std::string_view digits;
};

/// The number that ends at `end`.
numbered number_before(std::string_view name, std::size_t end) {
    std::size_t start = end;
    while (start > 0 && end - start < most_digits && is_digit(name[start - 1])) --start;
    return {name.substr(0, start), name.substr(start, end - start)};
}

/// Numbers as written, one behind the other: "01", "02", "03", "7" becomes "01-03,7".
class number_list {
  public:
    void add(std::string_view digits) {
        auto const value = *parse_integer(digits);
        if (!text_.empty() && value == last_ + 1 && digits.size() == written(value).size()) {
            last_ = value;
            return;
        }
        close();
        if (!text_.empty()) text_ += ',';
        text_ += digits;
        first_ = last_ = value;
        width_ = digits.size();
    }

    /// The list without its brackets.
    std::string take() {
        close();
        return std::move(text_);
    }

  private:
    /// As scontrol writes `value` within a range that begins with a number so wide.
    std::string written(std::int64_t value) const {
        std::string digits = std::to_string(value);
        if (digits.size() < width_) digits.insert(0, width_ - digits.size(), '0');
        return digits;
    }

    void close() {
        if (last_ > first_) text_ += '-' + written(last_);
        first_ = last_;
    }

    std::string text_;
    std::int64_t first_ = 0;
    std::int64_t last_ = 0;
    std::size_t width_ = 0;
};

/// Hosts that follow each other and differ in their last number only: the prefix, and that number's list ("01-16,20"); a name
/// that does not end in a number has no list.
struct run {
    std::string_view prefix;
    std::string numbers;
    bool several = false;
};

std::vector<run> runs_of(std::span<std::string const> hosts) {
    std::vector<run> runs;
    for (std::size_t i = 0; i < hosts.size();) {
        auto const first = number_before(hosts[i], hosts[i].size());
        if (first.digits.empty()) {
            runs.push_back({hosts[i++], "", false});
            continue;
        }
        number_list numbers;
        std::size_t const start = i;
        for (; i < hosts.size(); ++i) {
            auto const next = number_before(hosts[i], hosts[i].size());
            if (next.prefix != first.prefix || next.digits.empty()) break;
            numbers.add(next.digits);
        }
        runs.push_back({first.prefix, numbers.take(), i - start > 1});
    }
    return runs;
}

/// Where the one number lies in which two prefixes differ: the number's end, counted from the end of the prefix.
std::optional<std::size_t> differing_number(std::string_view a, std::string_view b) {
    std::size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[a.size() - 1 - same] == b[b.size() - 1 - same]) ++same;
    while (same > 0 && is_digit(a[a.size() - same])) --same;  // not in the middle of a number
    auto const in_a = number_before(a, a.size() - same);
    auto const in_b = number_before(b, b.size() - same);
    if (in_a.digits.empty() || in_b.digits.empty() || in_a.prefix != in_b.prefix) return std::nullopt;
    return same;
}

void append_run(run const& one, std::string& list) {
    list.append(one.prefix);
    if (one.several)
        list.append("[").append(one.numbers).append("]");
    else
        list.append(one.numbers);
}

/// Runs with the same numbers behind prefixes that differ in one number become "rack[1-2]n[1-4]"; returns how many were taken.
std::size_t append_racks(std::span<run const> runs, std::string& list) {
    auto const& first = runs.front();
    if (runs.size() < 2 || first.numbers.empty() || runs[1].numbers != first.numbers) return 0;
    auto const place = differing_number(first.prefix, runs[1].prefix);
    if (!place) return 0;
    auto const tail = first.prefix.substr(first.prefix.size() - *place);
    auto const head = number_before(first.prefix, first.prefix.size() - *place).prefix;
    number_list racks;
    std::size_t taken = 0;
    for (; taken < runs.size() && runs[taken].numbers == first.numbers && runs[taken].prefix.ends_with(tail); ++taken) {
        auto const prefix = runs[taken].prefix;
        auto const number = number_before(prefix, prefix.size() - *place);
        if (number.prefix != head || number.digits.empty()) break;
        racks.add(number.digits);
    }
    list.append(head).append("[").append(racks.take()).append("]").append(tail).append("[").append(first.numbers).append("]");
    return taken;
}

}  // namespace

std::string compress_hosts(std::span<std::string const> hosts) {
    auto const runs = runs_of(hosts);
    std::string list;
    for (std::size_t i = 0; i < runs.size();) {
        if (!list.empty()) list += ',';
        if (auto const taken = append_racks(std::span(runs).subspan(i), list); taken > 0) {
            i += taken;
            continue;
        }
        append_run(runs[i++], list);
    }
    return list;
}

}  // namespace muster
