#include "launch/samples/node_reader.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/kernel_files.hpp"
#include "base/text.hpp"
#include "launch/system/network.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

using count = std::optional<std::uint64_t>;

std::string find_interface(std::string const& towards) try {
    if (!towards.empty()) return interface_towards(towards);
    auto const own = own_addresses();
    return own.empty() ? "" : own.front().interface;
} catch (error const&) {
    return {};
}

/// Returns by how much the count grew for each of `passed`; nothing for one that has begun anew.
std::optional<double> growth(count now, count before, double passed) {
    if (!now || !before || *now < *before || passed <= 0) return std::nullopt;
    return static_cast<double>(*now - *before) / passed;
}

}  // namespace

std::optional<double> parse_load(std::string_view text) {
    auto const load = parse_real(text.substr(0, text.find(' ')));
    return load && *load >= 0 ? load : std::nullopt;
}

std::optional<processor_times> parse_processor_times(std::string_view text) {
    constexpr std::size_t steal = 7, guest = 8;  // by proc(5); the time of guests is in that of user, too
    processor_times found;
    for (auto const line : split(text, '\n')) {
        if (!line.starts_with("cpu")) break;
        if (line.size() > 3 && is_digit(line[3])) ++found.cpus;
        if (!line.starts_with("cpu ")) continue;
        std::size_t at = 0;
        for (auto const word : split(line.substr(4), ' ')) {
            auto const ticks = parse_count(word);
            if (!ticks) continue;
            if (at < guest) found.all += *ticks;
            if (at++ == steal) found.stolen = *ticks;
        }
        if (at <= steal) return std::nullopt;
    }
    return found.all > 0 ? std::optional(found) : std::nullopt;
}

void add_rates(node_sample& to, node_counts const& now, node_counts const& before, node_counts const& first, double passed_s,
               double ticks_per_s) {
    auto const stolen = [&](node_counts const& since, double of) {
        return now.times && since.times ? growth(now.times->stolen, since.times->stolen, of) : std::nullopt;
    };
    auto const all = now.times && before.times ? growth(now.times->all, before.times->all, 1).value_or(0) : 0;
    if (auto const share = stolen(before, all)) to.steal = std::min(*share, 1.0);
    to.steal_s = stolen(first, ticks_per_s);
    to.received_bytes_per_s = growth(now.received_bytes, before.received_bytes, passed_s);
    to.sent_bytes_per_s = growth(now.sent_bytes, before.sent_bytes, passed_s);
}

node_reader::node_reader(std::string interface, std::string const& towards)
    : interface_(interface.empty() ? find_interface(towards) : std::move(interface)) {}

node_sample node_reader::read() {
    node_counts counts;
    auto const at = clock::now();
    counts.times = parse_processor_times(read_text_file("/proc/stat"));
    node_sample now;
    now.load = parse_load(read_text_file("/proc/loadavg"));
    if (counts.times) now.cpus = counts.times->cpus;
    if (long const pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE); pages > 0 && size > 0)
        now.memory_bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
    if (!interface_.empty() && interface_.find('/') == std::string::npos) {
        auto const folder = fmt::format("/sys/class/net/{}/statistics/", interface_);
        counts.received_bytes = parse_count(read_text_file(folder + "rx_bytes"));
        counts.sent_bytes = parse_count(read_text_file(folder + "tx_bytes"));
        if (counts.received_bytes) now.interface = interface_;
    }
    if (before_) add_rates(now, counts, *before_, *first_, duration(at - at_).count(), ticks_per_s());
    if (!first_) first_ = counts;
    before_ = counts;
    at_ = at;
    return now;
}

}  // namespace muster
