#include "launch/scheduler/hosts/hostfile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.hpp"
#include "base/letters.hpp"
#include "base/text.hpp"
#include "launch/scheduler/hosts/bracketed_address.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

constexpr std::int64_t most_slots = 1'000'000;

class host_collector {
  public:
    host_collector(std::string_view text, std::string_view origin, errc code) : text_(text), origin_(origin), code_(code) {}

    [[noreturn]] void fail(std::string_view at, std::string const& why) const { fail_at(offset_of(at), why); }

    int number(std::string_view word, std::string_view what, int least) const {
        auto const value = word.find_first_not_of("0123456789") == std::string_view::npos ? parse_integer(word) : std::nullopt;
        if (!value || *value < least || *value > most_slots)
            fail(word, fmt::format("{} must be a number from {} to {}", what, least, most_slots));
        return static_cast<int>(*value);
    }

    /// Returns the hosts of "[user@]host[:N]".
    std::vector<std::string> names(std::string_view word, std::optional<int>& slots) const {
        auto const at = word.find('@');
        auto const user = at == std::string_view::npos ? std::string_view{} : word.substr(0, at);
        if (at != std::string_view::npos && (user.empty() || user.front() == '-' || !std::ranges::all_of(user, is_user)))
            fail(word, "expected a user's name before the '@'");
        auto list = at == std::string_view::npos ? word : word.substr(at + 1);
        if (auto const ip = split_bracketed(list)) {
            if (!ip->rest.empty() && ip->rest.front() != ':') fail(ip->rest, "expected :SLOTS behind the address");
            if (!ip->rest.empty()) slots = number(ip->rest.substr(1), "the slots behind ':'", 0);
            return {user.empty() ? ip->address : fmt::format("{}@{}", user, ip->address)};
        }
        if (looks_like_ipv6(list)) fail(list, std::string(bracket_ipv6));
        if (auto const colon = list.rfind(':'); colon != std::string_view::npos) {
            slots = number(list.substr(colon + 1), "the slots behind ':'", 0);
            list = list.substr(0, colon);
        }
        if (list.empty()) fail(list, "expected a host's name");
        std::vector<std::string> hosts;
        try {
            hosts = expand_hostlist(list, origin_);
        } catch (parse_error const& e) {  // reported again within the whole text
            std::string_view why = e.what();
            why = why.substr(0, why.find('\n'));
            auto const prefix =
                fmt::format("{}: ", origin_);  // a list is one line, and so its message begins without line and column
            if (why.starts_with(prefix)) why.remove_prefix(prefix.size());
            fail_at(offset_of(list) + e.column() - 1, std::string(why));
        }
        if (!user.empty())
            for (auto& host : hosts) host = fmt::format("{}@{}", user, host);
        return hosts;
    }

    void add(std::string_view word, std::vector<std::string> names, std::optional<int> slots, std::optional<int> gpus) {
        if (slots == 0) return;  // as in Open MPI: no ranks there
        for (auto& name : names) {
            auto const [place, is_new] = places_.try_emplace(name, entries_.size());
            if (is_new) {
                if (entries_.size() == max_hosts) fail(word, fmt::format("more than {} hosts", max_hosts));
                entries_.push_back({std::move(name), slots, gpus});
                continue;
            }
            auto& known = entries_[place->second];
            auto const sum = std::int64_t{known.slots.value_or(1)} + slots.value_or(1);
            if (sum > most_slots) fail(word, fmt::format("more than {} slots of one host", most_slots));
            known.slots = static_cast<int>(sum);
            if (gpus) known.gpus = gpus;
        }
    }

    std::vector<host_entry> take() {
        if (entries_.empty()) fail_at(0, "it names no host with slots");
        return std::move(entries_);
    }

  private:
    static bool is_user(char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; }
    [[noreturn]] void fail_at(std::size_t offset, std::string const& why) const {
        throw parse_error(origin_, text_, offset, why, code_);
    }
    std::size_t offset_of(std::string_view part) const { return static_cast<std::size_t>(part.data() - text_.data()); }

    std::string_view text_;
    std::string_view origin_;
    errc code_;
    std::vector<host_entry> entries_;
    std::unordered_map<std::string, std::size_t> places_;
};

bool is_one_of(std::string_view word, std::span<std::string_view const> words) {
    return std::ranges::find(words, word) != words.end();
}

void read_line(std::string_view line, host_collector& into) {
    constexpr std::array<std::string_view, 4> slots_keys{"slots", "cpus", "cpu", "count"};
    constexpr std::array<std::string_view, 4> most_keys{"max_slots", "max-slots", "slots_max", "slots-max"};
    std::string_view first;
    std::vector<std::string> names;
    std::optional<int> slots;
    std::optional<int> gpus;
    for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
        auto const end = std::min(line.find_first_of(" \t\r", at), line.size());
        auto const word = line.substr(at, end - at);
        at = end;
        if (first.empty()) {
            first = word;
            names = into.names(word, slots);
            continue;
        }
        auto const key = word.substr(0, word.find('='));
        auto const value = word.substr(std::min(key.size() + 1, word.size()));
        if (is_one_of(key, slots_keys))
            slots = into.number(value, key, 0);
        else if (is_one_of(key, most_keys))
            into.number(value, key, 1);  // the limit of oversubscription, which muster does not do
        else if (key == "gpus")
            gpus = into.number(value, key, 0);
        else
            into.fail(word, "expected slots=N, max_slots=N or gpus=N behind the host");
    }
    if (!first.empty()) into.add(first, std::move(names), slots, gpus);
}

}  // namespace

std::vector<host_entry> parse_hostfile(std::string_view text, std::string_view origin) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark of UTF-8
    host_collector all(text, origin, errc::config);
    for (auto const line : split(text, '\n')) read_line(line.substr(0, line.find('#')), all);
    return all.take();
}

std::vector<host_entry> parse_hosts(std::string_view text, std::string_view origin) {
    host_collector all(text, origin, errc::usage);
    std::size_t start = 0;
    while (start <= text.size()) {
        std::size_t end = start;
        for (bool inside = false; end < text.size() && (inside || text[end] != ','); ++end)
            inside = text[end] == '[' || (inside && text[end] != ']');
        auto const word = trim(text.substr(start, end - start));
        start = end + 1;
        if (word.empty()) continue;
        std::optional<int> slots;
        auto names = all.names(word, slots);
        all.add(word, std::move(names), slots, std::nullopt);
    }
    return all.take();
}

}  // namespace muster
