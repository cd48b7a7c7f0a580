#include "comm/exchange/internal/exchange_core.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "base/log.hpp"
#include "comm/comm_error.hpp"
#include "comm/observe/clock.hpp"

namespace muster::detail {

namespace {

using namespace std::chrono_literals;

exchange_options with_one_deadline(exchange_options options) {
    options.comm.deadline = options.deadline;
    return options;
}

tensor_view bytes_view(void* data, std::size_t bytes) {
    return {data, bytes, dtype::u8, memory_kind::host};
}

/// Every rank sees every rank's, so all of them throw, or none.
void check_options(communicator& ranks, exchange_options const& options) {
    std::array<std::int64_t, 4> const mine{static_cast<std::int64_t>(options.fusion_bytes),
                                           static_cast<std::int64_t>(options.cache_capacity), options.static_graph ? 1 : 0,
                                           options.autotune ? 1 : 0};
    static constexpr std::array names{"fusion_bytes", "cache_capacity", "static_graph", "autotune"};
    std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("exchange options", input_of(std::span(mine)), view_of(std::span(all))).wait();
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::size_t const which = i % mine.size();
        if (all[i] == all[which]) continue;
        int const rank = static_cast<int>(i / mine.size());
        throw comm_error(
            errc::usage,
            fmt::format("the option {} of the exchange is {} on rank 0 ({}) and {} on rank {} ({}); give the same everywhere",
                        names[which], all[which], ranks.host_of(0), all[i], rank, ranks.host_of(rank)),
            {rank});
    }
}

}  // namespace

exchange_core::exchange_core(identity const& who, exchange_options const& options)
    : trace(who.rank, who.world_size, who.host),
      who_(who),
      options_(with_one_deadline(options)),
      shared_{options_, count, recorder, trace, *this} {
    thread_ = std::thread([this] { run(); });
    {
        std::unique_lock lock(start_guard_);
        started_.wait(lock, [&] { return is_started_; });
    }
    if (start_problem_) {
        thread_.join();
        std::rethrow_exception(start_problem_);
    }
}

exchange_core::~exchange_core() {
    close(true);
}

void exchange_core::run() {
    try {
        set_up(communicator::create(who_, options_.comm));
    } catch (...) {
        start_problem_ = std::current_exception();
        graph_.reset();
        channels_.clear();
    }
    {
        std::scoped_lock const lock(start_guard_);
        is_started_ = true;
    }
    started_.notify_all();
    if (start_problem_) return;
    std::vector<pending_ptr> left;
    // A communicator that is destroyed while an exception passes does not wait for ranks that do not come.
    struct ending {
        exchange_core& core;
        std::vector<pending_ptr>& left;
        ~ending() {
            if (std::uncaught_exceptions() > 0) {
                for (auto const& each : core.channels_)
                    if (each) each->give_back(left);
                if (core.graph_) core.graph_->give_back(left);
                for (auto const& each : core.channels_)
                    if (each) each->leak();
                if (core.graph_) core.graph_->leak();
            }
            core.graph_.reset();
            while (!core.channels_.empty()) core.channels_.pop_back();
        }
    };
    try {
        ending const at_end{*this, left};
        loop();
    } catch (...) {
        fail(std::current_exception());
        std::vector<pending_ptr> queued;
        failure_text why;
        {
            std::scoped_lock const lock(guard_);
            queued.swap(queue_);
            why = *failure_;
        }
        left.insert(left.end(), queued.begin(), queued.end());
        for (auto const& each : left) {
            counters::add(count.errors);
            std::string text = why.message;
            if (text.find('"' + each->what.name + '"') == std::string::npos)
                text = fmt::format("{} (rank {} of {} on {}) did not finish: {}", describe(each->what.kind, each->what.name),
                                   who_.rank, who_.world_size, who_.host, text);
            set_failed(*each, why.code, text, why.culprits);
        }
        finish(left);
    }
}

void exchange_core::set_up(communicator ranks) {
    backend_ = ranks.backend();
    check_options(ranks, options_);
    places_ = gather_places(ranks);
    measure_clocks(ranks);
    if (!options_.timeline_folder.empty()) trace.start(options_.timeline_folder, offset, options_.mark_cycles);
    std::vector<int> everyone(static_cast<std::size_t>(ranks.size()));
    for (std::size_t i = 0; i < everyone.size(); ++i) everyone[i] = static_cast<int>(i);
    sets_.push_back(std::move(everyone));
    channel::hooks calls;
    calls.make_set = [this](communicator& all, std::vector<int> const& members) { return make_set(all, members); };
    if (options_.static_graph) calls.agreed = [this](channel& of) { look_for_graph(of); };
    channels_.push_back(std::make_unique<channel>(0, std::move(ranks), shared_, places_, std::move(calls)));
    if (options_.autotune && who_.rank == 0) channels_.front()->tune();
}

std::vector<std::string> exchange_core::gather_places(communicator& ranks) const {
    constexpr std::size_t longest = 48;
    std::array<char, longest> mine{};
    std::copy_n(options_.device_name.data(), std::min(options_.device_name.size(), longest - 1), mine.data());
    std::vector<char> all(longest * static_cast<std::size_t>(ranks.size()));
    ranks.allgather("devices", bytes_view(mine.data(), mine.size()), bytes_view(all.data(), all.size())).wait();
    std::vector<std::string> places;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        std::string const device = all.data() + static_cast<std::size_t>(rank) * longest;
        places.push_back(device.empty() ? ranks.host_of(rank) : ranks.host_of(rank) + ", " + device);
    }
    return places;
}

void exchange_core::measure_clocks(communicator& ranks) {
    constexpr int readings = 8;
    auto const size = static_cast<std::size_t>(ranks.size());
    std::vector<std::array<std::int64_t, 2>> mine(readings);
    std::int64_t ignored = 0;
    for (auto& each : mine) {
        each[0] = trace_time(exchange_clock::now());
        ranks.allreduce("clocks", view_of(std::span(&ignored, 1)), reduction::max).wait();
        each[1] = trace_time(exchange_clock::now());
    }
    std::size_t const bytes = readings * sizeof mine[0];
    std::vector<std::array<std::int64_t, 2>> all(readings * size);
    ranks.allgather("clocks", bytes_view(mine.data(), bytes), bytes_view(all.data(), bytes * size)).wait();
    if (ranks.rank() == 0) return;
    std::vector<clock_reading> pairs;
    for (std::size_t i = 0; i < readings; ++i) pairs.push_back({all[i][0], all[i][1], mine[i][0], mine[i][1]});
    offset = estimate_offset(pairs);
    // Ranks of one host read the same clock.
    if (ranks.host_of(0) == ranks.host_of(ranks.rank()) && std::abs(offset.offset_us) <= offset.error_us) offset = {};
}

int exchange_core::make_set(communicator& ranks, std::vector<int> const& members) {
    communicator some = ranks.include(members);
    std::vector<std::string> places;
    for (int const rank : members) places.push_back(places_.at(static_cast<std::size_t>(rank)));
    int const number = static_cast<int>(channels_.size());
    channels_.push_back(some ? std::make_unique<channel>(number, std::move(some), shared_, std::move(places), channel::hooks{})
                             : nullptr);
    std::scoped_lock const lock(guard_);
    sets_.push_back(members);
    return number;
}

void exchange_core::look_for_graph(channel& of) {
    if (graph_ || !recorded_.note(of.ready())) return;
    start_graph(of);
}

void exchange_core::start_graph(channel& of) {
    communicator own = of.ranks().include(sets_.front());
    graph_ = std::make_unique<static_channel>(std::move(own), shared_, places_, recorded_.graph(), recorded_.begun());
    std::unordered_map<std::string, std::shared_ptr<agreement const>> names;
    for (auto const& each : recorded_.graph()) names.emplace(each->what.name, each);
    for (auto& each : of.take_out(names)) graph_->submit(std::move(each));
    spdlog::debug("exchange: static graph of {} allreduces", names.size());
    {
        std::scoped_lock const lock(guard_);
        static_names_ = std::move(names);
    }
    static_names_used_.store(true, std::memory_order_release);
}

void exchange_core::check_against_graph(pending const& what) const {
    if (what.set != 0) return;
    if (what.what.kind == exchange_kind::join)
        throw comm_error(errc::usage, fmt::format("join (rank {} of {} on {}): ranks cannot join once the static graph is in use",
                                                  who_.rank, who_.world_size, who_.host));
    auto const found = static_names_.find(what.what.name);
    if (found == static_names_.end() || is_repetition(found->second->what, what.what)) return;
    auto const differs = compare(found->second->what, what.what);
    throw comm_error(errc::usage,
                     fmt::format("{} (rank {} of {} on {}): the static graph holds {}, this is {}; leave static_graph "
                                 "off for tensors that change",
                                 describe(what.what.kind, what.what.name), who_.rank, who_.world_size, who_.host, differs.mine,
                                 differs.theirs));
}

void exchange_core::throw_failure() const {
    throw comm_error(errc::peer_failed, fmt::format("the exchange failed before: {}", failure_->message), failure_->culprits);
}

void exchange_core::submit(pending_ptr what) {
    bool notify = false;
    {
        std::scoped_lock const lock(guard_);
        if (failure_) throw_failure();
        if (closing_) throw comm_error(errc::usage, "the exchange has ended");
        if (!static_names_.empty()) check_against_graph(*what);
        if (!in_flight_.insert(what.get()).second)
            throw comm_error(
                errc::usage,
                fmt::format("{} (rank {} of {} on {}): a request of this name is in flight; wait for it first, or use "
                            "another name",
                            describe(what->what.kind, what->what.name), who_.rank, who_.world_size, who_.host));
        for (auto const& io : what->tensors) queued_bytes_ += io.in.bytes();
        // What is gathered needs no waking: the thread will look when the time is over, or when somebody waits.
        bool const can_wait = gathering_ && what->what.kind < exchange_kind::barrier && what->tensors.size() == 1 &&
                              queued_bytes_ < options_.fusion_bytes;
        notify = asleep_ && !can_wait;
        queue_.push_back(std::move(what));
        has_work_.store(true, std::memory_order_release);
    }
    if (notify) work_.notify_one();
}

std::string exchange_core::free_name(exchange_kind kind, int set) {
    std::scoped_lock const lock(guard_);
    pending probe;
    probe.set = set;
    for (int number = 0;; ++number) {
        probe.what.name = fmt::format("{}{}.{}", internal_name, to_string(kind), number);
        if (!in_flight_.contains(&probe)) return probe.what.name;
    }
}

void exchange_core::wake() {
    hurry_.store(true, std::memory_order_release);
    {
        std::scoped_lock const lock(guard_);
        nudged_ = true;
        if (!asleep_) return;
    }
    work_.notify_one();
}

bool exchange_core::drain() {
    if (!has_work_.load(std::memory_order_acquire)) return false;
    std::vector<pending_ptr> taken;
    {
        std::scoped_lock const lock(guard_);
        taken.swap(queue_);
        queued_bytes_ = 0;
        has_work_.store(false, std::memory_order_relaxed);
    }
    for (auto& each : taken) {
        if (graph_ && each->set == 0 && graph_->covers(each->what.name))
            graph_->submit(std::move(each));
        else
            channels_.at(static_cast<std::size_t>(each->set))->submit(std::move(each));
    }
    return true;
}

void exchange_core::loop() {
    auto quiet_since = exchange_clock::now();
    for (;;) {
        if (abandon_.load(std::memory_order_acquire))
            throw comm_error(errc::peer_failed,
                             fmt::format("the exchange was destroyed by an exception on rank {} ({})", who_.rank, who_.host));
        step_result overall;
        bool const hurry = hurry_.exchange(false, std::memory_order_acquire);
        overall.moved = drain();
        auto const now = exchange_clock::now();
        bool all_ended = true;
        // Making a process set adds a channel meanwhile.
        for (std::size_t i = 0; i < channels_.size(); ++i) {
            if (!channels_[i]) continue;
            if (hurry) channels_[i]->hurry();
            overall.add(channels_[i]->step(now));
            all_ended = all_ended && channels_[i]->ended();
        }
        if (graph_) overall.add(graph_->step(now));
        if (all_ended) break;
        if (overall.moved)
            quiet_since = now;
        else
            pause(overall, quiet_since);
    }
    // What waited for all ranks to leave has its wish.
    std::vector<pending_ptr> left;
    for (auto const& each : channels_)
        if (each) each->give_back(left);
    if (graph_) graph_->give_back(left);
    for (auto const& each : left) {
        if (each->what.kind == exchange_kind::leave)
            complete(*each, count);
        else
            set_failed(*each, errc::usage,
                       fmt::format("{} (rank {} of {} on {}): the exchange ended before it",
                                   describe(each->what.kind, each->what.name), who_.rank, who_.world_size, who_.host),
                       {});
    }
    finish(left);
}

/// Between two looks at operations under way: first the processor is only offered to others, later the thread sleeps, for a
/// fraction of the time it has waited already, so that it is late by that fraction only.
void exchange_core::pause(step_result const& overall, exchange_clock::time_point quiet_since) {
    if (!overall.busy) {
        std::unique_lock lock(guard_);
        if (!queue_.empty() || nudged_ || abandon_) {
            nudged_ = false;
            return;
        }
        asleep_ = true;
        gathering_ = overall.gathering;
        // A loop would sleep again on what does not matter; waking once too often does no harm.
        work_.wait_until(lock, std::min(overall.wake, exchange_clock::now() + 100ms));
        asleep_ = gathering_ = false;
        nudged_ = false;
        return;
    }
    auto const quiet = exchange_clock::now() - quiet_since;
    // All ranks are at the same data, and many backends only move it within calls.
    if (quiet < (overall.data ? 200ms : 200us)) {
        ::sched_yield();
        return;
    }
    std::this_thread::sleep_for(std::clamp<exchange_clock::duration>(quiet / (overall.data ? 256 : 16), 20us, 1ms));
}

void exchange_core::finish(std::span<pending_ptr const> ended) {
    bool waited = false;
    {
        std::scoped_lock const lock(guard_);
        for (auto const& each : ended) {
            in_flight_.erase(each.get());
            waited = waited || each->waited.load();
        }
    }
    if (!waited) return;
    // Who waits has looked at the state with this lock held.
    { std::scoped_lock const lock(ended_guard_); }
    ended_.notify_all();
}

bool exchange_core::wait(pending& what, exchange_clock::time_point until) {
    auto const has_ended = [&] { return what.state.load() != pending::phase::waiting; };
    if (has_ended()) return true;
    if (!what.waited.exchange(true)) wake();
    auto const begin = exchange_clock::now();
    std::unique_lock lock(ended_guard_);
    bool const ended = until == exchange_clock::time_point::max() ? (ended_.wait(lock, has_ended), true)
                                                                  : ended_.wait_until(lock, until, has_ended);
    counters::add(count.wait_ns, static_cast<std::uint64_t>((exchange_clock::now() - begin).count()));
    return ended;
}

void exchange_core::fail(std::exception_ptr const& problem) {
    failure_text text;
    try {
        std::rethrow_exception(problem);
    } catch (comm_error const& known) {
        text = {known.code(), known.what(), known.culprits()};
    } catch (error const& known) {
        text = {known.code(), known.what(), {}};
    } catch (std::exception const& foreign) {
        text = {errc::internal, foreign.what(), {}};
    }
    {
        std::scoped_lock const lock(guard_);
        if (!failure_) failure_ = text;
    }
    if (!abandon_) spdlog::error("exchange: {}", text.message);
    dump_flight(text.message, text.culprits);
}

void exchange_core::dump_flight(std::string const& reason, std::vector<int> const& culprits) {
    if (options_.flight_folder.empty()) return;
    try {
        flight_dump all = dump();
        all.reason = reason;
        all.culprits = culprits;
        spdlog::error("exchange: the last operations are in {}", write_flight_dump(all, options_.flight_folder));
    } catch (std::exception const& trouble) {
        spdlog::error("exchange: the last operations could not be written: {}", trouble.what());
    }
}

flight_dump exchange_core::dump() const {
    flight_dump all;
    all.rank = who_.rank;
    all.ranks = who_.world_size;
    all.host = who_.host;
    all.records = recorder.records();
    std::scoped_lock const lock(guard_);
    for (pending const* const each : in_flight_) {
        if (all.waiting.size() == 100) break;
        std::string const& name = each->what.name;
        if (!name.empty() && name.front() != internal_name) all.waiting.push_back(name);
    }
    std::sort(all.waiting.begin(), all.waiting.end());
    if (failure_) {
        all.reason = failure_->message;
        all.culprits = failure_->culprits;
    }
    return all;
}

std::vector<int> exchange_core::members(int set) const {
    std::scoped_lock const lock(guard_);
    if (set < 0 || static_cast<std::size_t>(set) >= sets_.size())
        throw comm_error(errc::usage,
                         fmt::format("there is no process set {}; there are {} (0 is all ranks)", set, sets_.size()));
    return sets_[static_cast<std::size_t>(set)];
}

void exchange_core::close(bool unwinding) noexcept {
    if (!thread_.joinable()) return;
    try {
        std::vector<pending_ptr> leaves;
        bool failed = false;
        {
            std::scoped_lock const lock(guard_);
            closing_ = true;
            failed = failure_.has_value();
            duration allowed{30.0};
            if (options_.deadline.count() > 0 && options_.deadline < allowed) allowed = options_.deadline;
            auto const now = exchange_clock::now();
            for (std::size_t set = 0; set < sets_.size(); ++set) {
                if (std::find(sets_[set].begin(), sets_[set].end(), who_.rank) == sets_[set].end()) continue;
                auto leave = std::make_shared<pending>();
                leave->what.kind = exchange_kind::leave;
                leave->what.name = leave_name;
                leave->set = static_cast<int>(set);
                leave->submitted = now;
                leave->deadline =
                    (now + std::chrono::duration_cast<exchange_clock::duration>(allowed)).time_since_epoch().count();
                leaves.push_back(std::move(leave));
            }
            if (!failed && !unwinding) {
                for (auto& each : leaves) queue_.push_back(std::move(each));
                has_work_ = true;
            }
        }
        if (unwinding) abandon_ = true;
        wake();
        thread_.join();
    } catch (std::exception const& trouble) {
        spdlog::error("exchange: {}", trouble.what());
        if (thread_.joinable()) thread_.join();
    }
    try {
        trace.stop();
    } catch (std::exception const& trouble) {
        spdlog::error("timeline: {}", trouble.what());
    }
}

}  // namespace muster::detail
