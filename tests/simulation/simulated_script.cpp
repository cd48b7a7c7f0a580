#include "simulated_script.hpp"

#include <algorithm>
#include <utility>

namespace muster::simulation {

void simulated_script::change(std::vector<pool_host> there) {
    there_ = std::move(there);
    call_soon();
}

void simulated_script::call_soon() {
    may_differ_ = true;
    if (now_ == process::waits) its_.after(its_.dice_.seconds(0, 1), what::script_asks);
}

void simulated_script::befall(fault const& one) {
    using enum fault::kind;
    if (now_ == process::killed) return;
    switch (one.what) {
        case script_fails:
            fails_until_s_ = its_.now_ + one.lasts_s;
            its_.at_time(fails_until_s_, what::script_goes_on);
            return call_soon();
        case script_hangs: hangs_next_ = true; return call_soon();
        case script_killed: now_ = process::killed; return pass_on({.fault = "its process was killed", .is_last = true}, 0.001);
        default:
            if (now_ == process::stopped) return;
            now_ = process::stopped;
            if (one.lasts_s >= 0) ++its_.open_faults_, its_.after(one.lasts_s, what::script_goes_on, 1);
            return;
    }
}

void simulated_script::handle(occurrence const& one) {
    if (one.is == what::script_goes_on) {
        if (one.a == 1) {
            --its_.open_faults_;
            if (now_ == process::stopped) now_ = process::waits;
        }
        return call_soon();
    }
    if (one.is == what::script_asks) {
        if (now_ != process::waits || !may_differ_) return;
        now_ = process::calls;
        may_differ_ = false;
        bool const hangs = std::exchange(hangs_next_, false);
        bool const fails = hangs || its_.now_ < fails_until_s_;
        next_ =
            fails ? discovery_answer{.fault = hangs ? "did not end within 30 s" : "ended with code 1"} : discovery_answer{there_};
        return its_.after(hangs ? script_limit_s : its_.dice_.seconds(0.005, 0.3), what::script_answers);
    }
    if (now_ != process::calls) return;  // it was stopped or killed: what it had heard is lost, or it asks again
    now_ = process::waits;
    if (next_ != last_) pass_on(next_, its_.dice_.seconds(0.0001, 0.02));
    if (may_differ_ || !next_.fault.empty()) call_soon();
}

void simulated_script::pass_on(discovery_answer answer, double delay) {
    last_ = answer;
    mail_.push_back(std::move(answer));
    arrives_s_ = std::max(arrives_s_, its_.now_ + delay);
    its_.at_time(arrives_s_, what::launcher_hears_hosts, 0, 0, mail_.size() - 1);
}

bool simulated_script::hear(occurrence const& one, host_pool& hosts) {
    auto const& answer = mail_[one.c];
    auto const before = hosts.hosts;
    auto const state = heard_;
    auto const news = take(heard_, hosts, answer);
    its_.tell("launcher: hears of {} hosts{}", answer.hosts.size(), answer.fault.empty() ? "" : ": " + answer.fault);
    if (!answer.fault.empty() && hosts.hosts != before) its_.fail("a fault of the script changes the hosts");
    if (!answer.fault.empty() && (answer.is_last || state != script_state::fails) && news != host_news::fault)
        its_.fail("a fault of the script is not told");
    return news == host_news::changed;
}

bool simulated_script::is_known(host_pool const& hosts) const {
    if (now_ == process::killed || now_ == process::stopped) return true;
    auto const is_there = [&](pool_host const& one) { return std::find(there_.begin(), there_.end(), one) != there_.end(); };
    return hosts.hosts.size() == there_.size() && std::all_of(hosts.hosts.begin(), hosts.hosts.end(), is_there);
}

}  // namespace muster::simulation
