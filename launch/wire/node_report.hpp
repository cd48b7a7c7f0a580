// The report of one node about itself, before ranks start there, and the question that it answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "launch/hardware/gpu_state.hpp"

namespace muster {

/// What to inspect.
struct node_question {
    std::string program;             ///< as the user gave it; empty: none
    std::string working_dir;         ///< absolute; empty: none
    environment variables;           ///< the launcher's; the node's own are put to them as for a rank
    bool own_step = false;           ///< as in wire::job
    std::vector<std::string> names;  ///< that must resolve there
    std::string address;             ///< what the other nodes call this one
    std::string network_interface;
    duration limit{4};  ///< what is not known by then is left out, and said
    bool operator==(node_question const&) const = default;
};

struct folder_state {
    std::string path;
    std::uint64_t free_bytes = 0;
    std::string fault;  ///< why nothing can be written there; empty: it can
    bool operator==(folder_state const&) const = default;
};

struct name_fault {
    std::string name;
    std::string fault;
    bool operator==(name_fault const&) const = default;
};

struct node_report {
    std::string version;  ///< of its muster
    std::string host;     ///< short name, as the node itself says
    std::string address;  ///< where other nodes reach it, and the interface that has it
    std::string interface;
    std::string address_fault;
    int port = 0;  ///< where it accepts connections while it is inspected
    int cores = 0;
    int cpus = 0;          ///< hardware threads that may be used
    std::string cpu_list;  ///< "0-63"
    std::vector<gpu_state> gpus;
    std::string gpu_note;
    std::string machine_fault;
    std::vector<folder_state> folders;
    std::string program;  ///< its path there
    std::string program_fault;
    std::string working_dir_fault;
    std::vector<name_fault> unresolved;
    std::vector<std::string> unfinished;  ///< what took too long
    double asked_at = 0;                  ///< the node's clock, in seconds since 1970, when the question came
    double answered_at = 0;               ///< and when this was sent
    bool operator==(node_report const&) const = default;
};

}  // namespace muster
