// Takes the answers of the script that names hosts: what they change, and what of them is to be told.
#pragma once

#include "launch/elastic/discovery.hpp"
#include "launch/elastic/host_pool.hpp"

namespace muster {

/// Says what is known of the script by its answers.
enum class script_state {
    unasked,  ///< it has not answered well yet
    answers,
    fails,  ///< its last answer was a fault
    gone,   ///< the process that asks it has ended: the hosts stay as they are
};

enum class host_news {
    none,
    changed,  ///< the hosts have
    fault,    ///< which has not been told yet; the hosts stay as they were
    useless,  ///< so is the script: its first answer is a fault
};

/// Pure. A fault is told once, until the script answers well again; the end of its process always.
host_news take(script_state& script, host_pool& hosts, discovery_answer const& answer);

}  // namespace muster
