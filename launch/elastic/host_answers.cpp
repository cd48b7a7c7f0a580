#include "launch/elastic/host_answers.hpp"

#include <utility>

#include "launch/elastic/membership_guards.hpp"

namespace muster {

using membership::guard;
using membership::holds;

host_news take(script_state& script, host_pool& hosts, discovery_answer const& answer) {
    using enum script_state;
    if (answer.is_last)
        return holds(guard::tells_of_scripts_end, std::exchange(script, gone) != gone, false) ? host_news::fault
                                                                                              : host_news::none;
    bool const faulty = !answer.fault.empty();
    if (faulty && script == unasked) return host_news::useless;
    bool const told = std::exchange(script, faulty ? fails : answers) == fails;
    if (holds(guard::faults_change_no_hosts, faulty, false)) return told ? host_news::none : host_news::fault;
    return hosts.take(answer.hosts) ? host_news::changed : host_news::none;
}

}  // namespace muster
