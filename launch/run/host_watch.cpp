#include "launch/run/host_watch.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdint>
#include <utility>

#include "base/text.hpp"
#include "launch/run/gather_hosts.hpp"

namespace muster {

void host_watch::start() {
    run_.asks_hosts->watch(loop_, [this](discovery_answer const& answer) { take(answer); });
    look();
}

void host_watch::take(discovery_answer const& answer) {
    auto const before = run_.outcome.hosts.all().size();
    auto const news = muster::take(script_, run_.outcome.hosts, answer);
    if (news == host_news::fault)
        calls_.say("note: --host-discovery-script " + answer.fault_with("; the hosts stay as they were meanwhile"));
    if (news != host_news::changed) return;
    note_unused(before);
    look();
}

/// Says why nothing grows, where nobody has said how far it may.
void host_watch::note_unused(std::size_t slots_before) {
    auto const slots = run_.outcome.hosts.all().size();
    auto const most = static_cast<std::size_t>(most_members(run_.options, run_.life));
    if (run_.options.most_ranks || slots <= slots_before || slots <= most || std::exchange(noted_unused_, true)) return;
    calls_.say(fmt::format("note: there are {} slots, and this run has {} at most; start it with --max-np {} to let it grow",
                           slots, counted(static_cast<std::int64_t>(most), "rank"), slots));
}

void host_watch::look() {
    if (run_.asks_hosts == nullptr || !calls_.active()) return;
    auto const& options = run_.options;
    auto const& hosts = run_.outcome.hosts;
    bool const followed = calls_.take_in_place(hosts);
    double const now = seconds_now();  // read after take_in_place, in which slots of failed starts begin to cool down
    if (cools_) loop_.cancel(*cools_);
    cools_.reset();
    if (auto const next = hosts.next_free_s(now))
        cools_ = loop_.after(duration(*next - now + 0.01), [this] { cools_.reset(), look(); });
    if (followed) return news_.clear();
    auto const news = find_host_news(hosts, run_.present().members, most_members(options, run_.life), now);
    if (std::exchange(news_, news) == news || news.empty()) return;
    int const number = options.signal_before_end ? options.signal_before_end->number : SIGUSR1;
    run_.outcome.told_of_hosts = true;
    calls_.notify(number, [this, news](signal_reach const& reach) {
        calls_.say(fmt::format(
            "note: {}: {}; {}", news, reach.text,
            reach.reached == 0
                ? "the ranks stay as they are"
                : fmt::format("once all have saved and ended with {}, the next generation begins", run_.options.saved_code)));
    });
}

}  // namespace muster
