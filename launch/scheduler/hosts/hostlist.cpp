#include "launch/scheduler/hosts/hostlist.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"
#include "launch/scheduler/hosts/bracketed_address.hpp"

namespace muster {

namespace {

constexpr std::size_t max_host_name = 255;
constexpr std::size_t max_digits = 18;  // fits a std::int64_t

bool is_name_character(char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
}

bool is_separator(char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct range {
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::size_t width = 0;
};

/// "rack[1-2]n[3]x" has the texts "rack", "n", "x" around two brackets.
struct term {
    std::vector<std::string_view> texts;
    std::vector<std::vector<range>> brackets;
};

class reader {
  public:
    reader(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

    std::vector<std::string> hosts() {
        std::vector<std::string> all;
        while (true) {
            while (at_ < text_.size() && is_separator(text_[at_])) ++at_;
            if (at_ == text_.size()) return all;
            std::size_t const start = at_;
            term const parsed = read_term();
            std::size_t const count = count_of(parsed);
            if (count > max_hosts - all.size())
                fail(start, fmt::format("the list names more than {} hosts; check the length of its ranges", max_hosts));
            // Reserving the exact size term by term would copy everything for each term.
            if (all.size() + count > all.capacity()) all.reserve(std::max(all.size() + count, 2 * all.capacity()));
            append(parsed, all, start);
        }
    }

  private:
    [[noreturn]] void fail(std::size_t offset, std::string const& why) const { throw parse_error(origin_, text_, offset, why); }

    term read_term() {
        term t;
        if (text_[at_] == '-') fail(at_, "a host name does not begin with '-'");
        while (true) {
            std::size_t const start = at_;
            while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
            t.texts.push_back(text_.substr(start, at_ - start));
            if (at_ == text_.size() || is_separator(text_[at_])) return t;
            if (text_[at_] == ']') fail(at_, "']' without a '[' before it");
            if (text_[at_] != '[') fail(at_, "this character cannot be part of a host name");
            t.brackets.push_back(read_bracket());
        }
    }

    std::vector<range> read_bracket() {
        std::size_t const open = at_++;
        std::vector<range> ranges;
        while (true) {
            ranges.push_back(read_range(open));
            if (text_[at_] == ']') break;
            ++at_;  // skips a comma
        }
        ++at_;
        return ranges;
    }

    /// Leaves `at_` on the ',' or ']' that ends the range.
    range read_range(std::size_t open) {
        std::size_t const start = at_;
        range r;
        r.low = r.high = read_number(open);
        r.width = at_ - start;
        if (at_ < text_.size() && text_[at_] == '-') {
            ++at_;
            std::size_t const upper = at_;
            r.high = read_number(open);
            if (r.high < r.low) fail(upper, fmt::format("the range ends at {} before its beginning {}", r.high, r.low));
        }
        if (at_ == text_.size()) fail(open, "this '[' is never closed");
        if (text_[at_] != ',' && text_[at_] != ']') fail(at_, "expected ',', '-' or ']' in a range of hosts");
        return r;
    }

    std::int64_t read_number(std::size_t open) {
        std::size_t const start = at_;
        std::int64_t value = 0;
        for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
            if (at_ - start == max_digits) fail(start, fmt::format("a number of more than {} digits", max_digits));
            value = value * 10 + (text_[at_] - '0');
        }
        if (at_ == start) {
            if (at_ == text_.size()) fail(open, "this '[' is never closed");
            fail(at_, "expected a number, as in [1-4,7]");
        }
        return value;
    }

    /// Saturates above max_hosts, whatever the numbers are.
    static std::size_t count_of(term const& t) {
        std::size_t product = 1;
        for (auto const& ranges : t.brackets) {
            std::uint64_t sum = 0;
            for (auto const& r : ranges) {
                sum += static_cast<std::uint64_t>(r.high - r.low) + 1;
                if (sum > max_hosts) return max_hosts + 1;
            }
            product *= sum;
            if (product > max_hosts) return max_hosts + 1;
        }
        return product;
    }

    void append(term const& t, std::vector<std::string>& all, std::size_t start) const {
        std::size_t const brackets = t.brackets.size();
        std::vector<std::vector<std::string>> words;
        for (auto const& ranges : t.brackets) words.push_back(words_of(ranges));
        std::vector<std::size_t> digit(brackets, 0);
        std::string host;
        while (true) {
            host.assign(t.texts.front());
            for (std::size_t b = 0; b < brackets; ++b) host.append(words[b][digit[b]]).append(t.texts[b + 1]);
            if (host.size() > max_host_name) fail(start, fmt::format("a host name of more than {} characters", max_host_name));
            all.push_back(host);
            if (!advance(digit, words)) return;
        }
    }

    static std::vector<std::string> words_of(std::vector<range> const& ranges) {
        std::vector<std::string> words;
        for (auto const& r : ranges)
            for (std::int64_t v = r.low; v <= r.high; ++v) words.push_back(fmt::format("{:0{}}", v, r.width));
        return words;
    }

    /// Goes to the next combination: the last bracket changes fastest, then the first, the second, and so on.
    static bool advance(std::vector<std::size_t>& digit, std::vector<std::vector<std::string>> const& words) {
        std::size_t const brackets = digit.size();
        for (std::size_t step = 0; step < brackets; ++step) {
            std::size_t const b = step == 0 ? brackets - 1 : step - 1;
            if (++digit[b] < words[b].size()) return true;
            digit[b] = 0;
        }
        return false;
    }

    std::string_view text_;
    std::string_view origin_;
    std::size_t at_ = 0;
};

}  // namespace

std::optional<host_name_fault> check_host_name(std::string_view name) noexcept {
    if (name.empty()) return host_name_fault{0, "expected a host's name"};
    if (name.front() == '-') return host_name_fault{0, "a host name does not begin with '-'"};
    if (name.size() > max_host_name) return host_name_fault{0, "a host name of more than 255 characters"};
    for (std::size_t i = 0; i < name.size(); ++i)
        if (!is_name_character(name[i])) return host_name_fault{i, "this character cannot be part of a host name"};
    return std::nullopt;
}

std::vector<std::string> expand_hostlist(std::string_view text, std::string_view origin) {
    return reader(text, origin).hosts();
}

std::vector<int> expand_counts(std::string_view text, std::size_t nodes, std::string_view origin) {
    std::vector<int> counts;
    std::size_t offset = 0;
    for (auto const piece : split(text, ',')) {
        auto const paren = piece.find('(');
        auto const value = parse_integer(piece.substr(0, paren));
        if (!value || *value < 0 || *value > INT32_MAX || !is_digit(piece.front()))
            throw parse_error(origin, text, offset, "expected a number, as in 4(x3),2");
        std::size_t times = 1;
        if (paren != std::string_view::npos) {
            auto const repeat = piece.substr(paren);
            std::optional<std::int64_t> given;
            if (repeat.size() > 3 && repeat.starts_with("(x") && repeat.back() == ')' && is_digit(repeat[2]))
                given = parse_integer(repeat.substr(2, repeat.size() - 3));
            if (!given) throw parse_error(origin, text, offset + paren, "expected (xN), as in 4(x3),2");
            times = static_cast<std::size_t>(*given);
        }
        counts.insert(counts.end(), std::min(times, nodes - counts.size()), static_cast<int>(*value));
        offset += piece.size() + 1;
    }
    if (counts.size() < nodes)
        throw parse_error(origin, text, text.size(), fmt::format("{} numbers for {} nodes", counts.size(), nodes));
    return counts;
}

namespace {

constexpr std::size_t most_digits = 18;

/// "n" and "007" of "n007": the text before the last number of a name that ends in one, and the number as written.
struct numbered {
    std::string_view prefix;
    std::string_view digits;
};

/// Returns the number that ends at `end`.
numbered number_before(std::string_view name, std::size_t end) {
    std::size_t start = end;
    while (start > 0 && end - start < most_digits && is_digit(name[start - 1])) --start;
    return {name.substr(0, start), name.substr(start, end - start)};
}

/// Collects numbers as written, one after the other: "01", "02", "03", "7" becomes "01-03,7".
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

    /// Returns the list without its brackets.
    std::string take() {
        close();
        return std::move(text_);
    }

  private:
    /// Returns `value` as scontrol writes it in a range that begins with a number of this width.
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

/// Consecutive hosts that differ only in their last number: the prefix, and that number's list ("01-16,20"); a name that does not
/// end in a number has no list.
struct run {
    std::string_view prefix;
    std::string numbers;
    bool several = false;
};

std::vector<run> runs_of(std::span<std::string const> hosts) {
    std::vector<run> runs;
    for (std::size_t i = 0; i < hosts.size();) {
        auto const first = number_before(hosts[i], hosts[i].size());
        if (first.digits.empty() || is_ipv6_address(hosts[i])) {
            runs.push_back({hosts[i++], "", false});
            continue;
        }
        number_list numbers;
        std::size_t const start = i;
        for (; i < hosts.size(); ++i) {
            auto const next = number_before(hosts[i], hosts[i].size());
            if (next.prefix != first.prefix || next.digits.empty() || is_ipv6_address(hosts[i])) break;
            numbers.add(next.digits);
        }
        runs.push_back({first.prefix, numbers.take(), i - start > 1});
    }
    return runs;
}

/// Finds the one number in which two prefixes differ: returns the number's end, counted from the end of the prefix.
std::optional<std::size_t> differing_number(std::string_view a, std::string_view b) {
    std::size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[a.size() - 1 - same] == b[b.size() - 1 - same]) ++same;
    while (same > 0 && is_digit(a[a.size() - same])) --same;  // not within a number
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

/// Joins runs with the same numbers, after prefixes that differ in one number, to "rack[1-2]n[1-4]"; returns how many it has
/// joined.
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
