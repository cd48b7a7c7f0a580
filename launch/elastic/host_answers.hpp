// Takes the answers of the script that names hosts: what they change, and which of them need a note.
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
    fault,    ///< which no note has reported yet; the hosts stay as they were
    useless,  ///< so is the script: its first answer is a fault
};

/// Pure. A fault is news once, until the script answers well again; the end of its process always is.
host_news take(script_state& script, host_pool& hosts, discovery_answer const& answer);

}  // namespace muster
