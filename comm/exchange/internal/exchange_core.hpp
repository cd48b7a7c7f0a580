// The inside of an exchange: its thread, and what that shares with those who submit.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "comm/exchange/exchange_options.hpp"
#include "comm/exchange/internal/channel.hpp"
#include "comm/exchange/internal/context.hpp"
#include "comm/exchange/internal/static_channel.hpp"
#include "pmix/identity.hpp"

namespace muster::detail {

class exchange_core final : public finisher {
  public:
    /// Starts the thread and waits until it has its communicator.
    exchange_core(identity const& who, exchange_options const& options);
    ~exchange_core();

    /// Hands a request over. Throws errc::usage if one of that name is in flight, and the first failure if there was one.
    void submit(pending_ptr what);
    /// A name for a request that has none: the lowest number of its kind that is free.
    std::string free_name(exchange_kind kind, int set);

    bool wait(pending& what, exchange_clock::time_point until);
    void wake();

    /// Collective end, then the thread's. `unwinding`: do not wait for other ranks.
    void close(bool unwinding) noexcept;

    identity const& who() const noexcept { return who_; }
    std::string const& backend() const noexcept { return backend_; }
    exchange_options const& options() const noexcept { return options_; }
    std::vector<int> members(int set) const;  ///< throws errc::usage if there is no such set
    flight_dump dump() const;
    bool is_static() const noexcept { return static_names_used_.load(std::memory_order_acquire); }

    void finish(std::span<pending_ptr const> ended) override;

    counters count;
    timeline trace;
    flight_recorder recorder;
    clock_offset offset;

  private:
    /// Requests in flight by process set and name.
    struct same_name {
        std::size_t operator()(pending const* one) const noexcept {
            return std::hash<std::string>{}(one->what.name) ^ (static_cast<std::size_t>(one->set) * 0x9e3779b97f4a7c15u);
        }
        bool operator()(pending const* a, pending const* b) const noexcept {
            return a->set == b->set && a->what.name == b->what.name;
        }
    };

    void run();
    void set_up(communicator ranks);
    void measure_clocks(communicator& ranks);
    std::vector<std::string> gather_places(communicator& ranks) const;
    int make_set(communicator& ranks, std::vector<int> const& members);
    void look_for_graph(channel& of);
    void start_graph(channel& of);
    bool drain();
    void loop();
    void fail(std::exception_ptr const& problem);
    void dump_flight(std::string const& reason, std::vector<int> const& culprits);
    void pause(step_result const& overall, exchange_clock::time_point quiet_since);
    [[noreturn]] void throw_failure() const;
    void check_against_graph(pending const& what) const;

    identity const who_;
    exchange_options const options_;
    context shared_;
    std::string backend_;
    std::vector<std::string> places_;
    bool crowded_ = false;

    mutable std::mutex guard_;  // of what follows
    std::vector<pending_ptr> queue_;
    std::unordered_set<pending const*, same_name, same_name> in_flight_;
    std::vector<std::vector<int>> sets_;
    std::unordered_map<std::string, std::shared_ptr<agreement const>> static_names_;
    std::optional<failure_text> failure_;
    bool asleep_ = false, gathering_ = false, nudged_ = false;
    std::size_t queued_bytes_ = 0;
    std::condition_variable work_;

    std::atomic<bool> has_work_{false}, hurry_{false}, static_names_used_{false}, closing_{false}, abandon_{false};
    std::mutex ended_guard_;
    std::condition_variable ended_;
    std::mutex start_guard_;
    std::condition_variable started_;
    bool is_started_ = false;
    std::exception_ptr start_problem_;

    // the thread's own
    std::vector<std::unique_ptr<channel>> channels_;  // by number of the set; null: not a member
    std::unique_ptr<static_channel> graph_;
    graph_recorder recorded_;
    std::thread thread_;
};

}  // namespace muster::detail
