// The course of a simulated run: its clock, what is going to happen, its dice and its story.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "schedule.hpp"
#include "simulated_run.hpp"

namespace muster::simulation {

enum class what {
    rank_continues,  ///< with its computation
    rank_saves,      ///< its commit is whole
    rank_reads,      ///< its next message
    rank_completes,  ///< its collective
    rank_fails,      ///< its collective, by what it sees itself
    launcher_reads,  ///< a message of a rank
    launcher_sees_end,
    launcher_times,
    launcher_hosts,  ///< it looks at them
    script_asks,     ///< what there is of hosts
    script_answers,
    script_goes_on,
    launcher_hears_hosts,
    launcher_blames,  ///< for what it has held
    launcher_misses,  ///< a host
    launcher_looks,   ///< at who stays stopped
    spare_again,
    befalls,
    host_returns,
    goes_on,
    dies,
    // of kept states and restarts
    keeper_goes_on,
    leader_goes_on,
    keeper_comes,
    keeper_does,  ///< an order that has come
    keeper_looks,
    leader_hears,   ///< a word
    leader_misses,  ///< a connection that has ended
    leader_times,
    copy_ends,
    launcher_decides,  ///< on a restart
    launcher_places,
    launcher_waits,
    launcher_hears,
};

struct occurrence {
    double at_s;
    int order;
    what is;
    int a = 0, b = 0;
    std::size_t c = 0;  ///< an item of the mail
    int life = 0;       ///< of the ranks: what happens to those of an earlier one is stale
    bool operator<(occurrence const& other) const { return at_s != other.at_s ? at_s > other.at_s : order > other.order; }
};

struct course {
    course(std::uint64_t seed, std::vector<std::string>* its_story) : story_(its_story), dice_(seed) {}

    void at_time(double when_s, what is, int a = 0, int b = 0, std::size_t c = 0) {
        queue_.push({when_s, order_++, is, a, b, c, life_});
    }
    void after(double delay, what is, int a = 0, int b = 0, std::size_t c = 0) { at_time(now_ + delay, is, a, b, c); }
    void fail(std::string const& why) {
        if (end_.broken.empty()) end_.broken = why, end_.at_s = now_;
    }
    template <typename... Args>
    void tell(fmt::format_string<Args...> text, Args&&... args) {
        if (story_ != nullptr) story_->push_back(fmt::format("{:9.3f} ", now_) + fmt::format(text, std::forward<Args>(args)...));
    }

    std::vector<std::string>* story_;
    dice dice_;
    std::priority_queue<occurrence> queue_;
    double now_ = 0, last_fault_s_ = 0;
    int order_ = 0, open_faults_ = 0, life_ = 0;
    outcome end_;
};

inline std::string host_name(auto host) {
    return std::string("h") + static_cast<char>('0' + static_cast<int>(host));
}
inline std::size_t host_number(std::string const& name) {
    return static_cast<std::size_t>(name[1] - '0');
}

}  // namespace muster::simulation
