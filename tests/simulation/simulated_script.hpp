// The simulated script that names hosts, and the process that calls it: what it answers, when, and what the launcher makes of it.
#pragma once

#include <vector>

#include "course.hpp"
#include "launch/elastic/host_answers.hpp"
#include "schedule.hpp"

namespace muster::simulation {

/// The process calls the script again and again, and passes answers on that differ from the one before. To save events it is
/// called here only if its answer may differ.
class simulated_script {
  public:
    simulated_script(course& its, std::vector<pool_host> there) : its_(its), there_(std::move(there)), last_{.hosts = there_} {}

    /// These hosts are there from now on.
    void change(std::vector<pool_host> there);
    void befall(fault const& one);
    void handle(occurrence const& one);
    /// The launcher takes an answer, as host_watch does. Returns whether its hosts have changed.
    bool hear(occurrence const& one, host_pool& hosts);

    /// The launcher knows the hosts that are there, or never will.
    bool is_known(host_pool const& hosts) const;

  private:
    enum class process { waits, calls, stopped, killed };
    void call_soon();
    void pass_on(discovery_answer answer, double delay);

    course& its_;
    std::vector<pool_host> there_;
    discovery_answer last_, next_;  ///< what was passed on; what the present call answers
    process now_ = process::waits;
    bool may_differ_ = false, hangs_next_ = false;
    double fails_until_s_ = -1;
    std::vector<discovery_answer> mail_;
    double arrives_s_ = 0;
    script_state heard_ = script_state::answers;
};

}  // namespace muster::simulation
