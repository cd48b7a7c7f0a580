// Messages between the launcher and the rank shims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/environment.hpp"
#include "base/process/process.hpp"
#include "base/units.hpp"
#include "launch/hardware/gpu_state.hpp"
#include "launch/observe/memory_kills.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/placement/placement_request.hpp"
#include "pmix/identity.hpp"

// The report of one node about itself, before ranks start there, and the question that it answers.

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

namespace muster::wire {

/// The first message of a shim, once the launcher has proved that it has the run's key. That it opens proves the shim's.
struct hello {
    std::string version;  ///< of its muster
    std::string host;     ///< short name of its node
    int rank = -1;        ///< as the engine numbers it; -1: a probe
    int world_size = 0;
    long pid = 0;
    std::string step;    ///< what the engine calls all of this, for ending it from outside: "4242.0"
    std::string fault;   ///< why it cannot go on (the engine's variables contradict each other); empty: all is well
    int agent = -1;      ///< of a host's agent, which carries its shims' messages: its number; -1: a shim
    bool again = false;  ///< of a shim whose agent carries nothing any more
    bool operator==(hello const&) const = default;
};

/// All that a shim needs to know to place and start its rank.
struct job {
    identity who;
    placement_request place;
    std::vector<std::string> command;
    std::string working_dir;
    environment variables;             ///< the launcher's, without what said who the launcher is
    std::vector<std::string> exports;  ///< -x NAME=VALUE, which also overrides what muster sets
    std::string output_dir;            ///< absolute, or empty
    std::uint64_t output_window = 0;   ///< bytes of output that the shim may send before it learns of more room
    bool own_step = false;             ///< the engine's step is the ranks' own (srun): its variables stay
    std::string python_package;        ///< folders of the launcher's installation (python_folders), or empty
    std::string python_horovod;
    std::string network_interface;
    std::string address;      ///< what the other nodes call this rank's node, with the site's rule applied
    std::string own_address;  ///< where other nodes reach this one, as its agent has found; empty: the shim looks
    duration grace{5};
    duration lost_after{15};
    bool hold_worker_port = false;   ///< the world is small enough for TF_CONFIG
    std::vector<soft_limit> limits;  ///< of the launcher, where it runs on one of the nodes; else the node's own hold
    int file_mask = -1;              ///< umask of the launcher; below 0: the node's own
    bool keeps_state = false;        ///< --keep-state, on other nodes at least
    std::string kept_file;           ///< of the node's keeper, for what its ranks commit; empty: none
    std::vector<int> kept_parts;     ///< of such a file, by rank, also of spares; empty: their numbers
    bool in_place = false;           ///< the others may go on without a lost rank: each gets a socket (MUSTER_EVENTS)
    bool operator==(job const&) const = default;
};

/// A shim has placed its rank and holds its ports.
struct ready {
    int gpu_index = -1;  ///< in the node's PCI order; -1: no GPU
    std::string gpu_uuid;
    std::string cpus;  ///< "0-7", or empty: not bound
    std::string nic;
    std::string why;      ///< the cores and the GPU were chosen so
    std::string note;     ///< what the user should know of the node (share_note); mostly empty
    std::string address;  ///< where other nodes reach this one
    int master_port = 0;  ///< of rank 0
    int jax_port = 0;     ///< of rank 0
    int worker_port = 0;  ///< if wanted
    bool operator==(ready const&) const = default;
};

/// All ranks are ready: start.
struct go {
    std::string address;
    int master_port = 0;
    int jax_port = 0;
    std::vector<std::string> workers;  ///< "address:port" of each rank, or empty
    bool operator==(go const&) const = default;
};

/// The rank's program runs.
struct started {
    long pid = 0;
    bool operator==(started const&) const = default;
};

/// It could not be placed or started: nothing runs.
struct failed {
    std::string what;
    int exit_code = 125;
    bool operator==(failed const&) const = default;
};

/// The rank's program has ended; descendants of it may be left.
struct ended {
    int wait_status = 0;
    std::string last_lines;  ///< of its stderr
    bool asked = false;      ///< the engine or the scheduler had asked this shim, too, to end
    memory_verdict memory = memory_verdict::unknown;
    bool operator==(ended const&) const = default;
};

/// Nothing is left of the rank on its node; the shim waits for `bye`.
struct gone {
    bool operator==(gone const&) const = default;
};

/// From the launcher: so many bytes more of the rank's output may be sent (frame_channel.hpp).
struct room {
    std::uint64_t bytes = 0;
    bool operator==(room const&) const = default;
};

/// The rank has initialised MPI, of this library, as far as can be seen.
struct used_mpi {
    std::string library;
    bool operator==(used_mpi const&) const = default;
};

/// What started the shim has died (slurmstepd, orted): the rank is being ended.
struct orphaned {
    std::string parent;
    bool operator==(orphaned const&) const = default;
};

/// The engine or the scheduler has sent the shim this signal, which asks it to end; SIGKILL: it has killed the shim's guard.
struct asked_to_end {
    int number = 0;
    bool operator==(asked_to_end const&) const = default;
};

/// The rank's MPI has printed that this rank of the world aborts it.
struct aborting {
    int rank = -1;
    int code = 0;
    bool operator==(aborting const&) const = default;
};

/// From the launcher: answer with the same number (`pong`).
struct ping {
    int number = 0;
    bool operator==(ping const&) const = default;
};
struct pong {
    int number = 0;
    int agent_missed = 0;  ///< pings before this one that a remote run's agent on the host has left without an answer
    bool operator==(pong const&) const = default;
};

/// From the launcher: look at the rank; first run `command` for it, if there is one (--on-hang).
struct inspect {
    int number = 0;  ///< below 0: only who is stopped is asked, and of the answer pid and state count
    std::string command;
    bool operator==(inspect const&) const = default;
};

/// What was seen.
struct seen {
    int number = 0;
    process_sight sight;
    bool operator==(seen const&) const = default;
};

/// From the launcher: send this to the rank and its descendants. With `stop` the rank is to end: SIGKILL follows after the grace.
struct signal {
    int number = 0;
    bool stop = false;
    bool if_caught = false;  ///< only to processes that have a handler for it
    bool operator==(signal const&) const = default;
};

/// From the launcher: end with this code.
struct bye {
    int exit_code = 0;
    bool operator==(bye const&) const = default;
};

/// From the launcher to a probe: inspect your node.
struct examine {
    node_question what;
    bool operator==(examine const&) const = default;
};

/// From a probe: what it has seen.
struct report {
    node_report node;
    bool operator==(report const&) const = default;
};

/// From the launcher to a probe: connect there, as ranks will to rank 0's node.
struct reach {
    std::string address;
    int port = 0;
    bool operator==(reach const&) const = default;
};

/// From a probe: it has connected, or not.
struct reached {
    std::string fault;  ///< empty: it has
    bool operator==(reached const&) const = default;
};

/// The use of the job's GPUs on the shim's node: from one shim a node, and only where there are GPUs and a folder for the run.
struct gpus_used {
    std::vector<gpu_use> gpus;
    bool operator==(gpus_used const&) const = default;
};

/// From the starter of a remote run to the hosts' agents, the same to all: start the shims of your host. Each gets MUSTER_RANK and its
/// like besides.
struct start_shims {
    std::vector<std::string> shim;  ///< argv
    environment variables;          ///< in addition to the agent's
    int world_size = 0;             ///< with the spares
    std::string hosts;              ///< of all nodes, in the order of the agents' numbers: "n[1-1000]"
    std::vector<int> ranks;         ///< the ranks of each, as pack_ranks writes them (host_ranks.hpp)
    std::string nspace;
    std::string network_interface;
    bool serve_mpi = true;  ///< PMIx and PMI-1 for the ranks; not for probes
    duration lost_after{15};
    int spares = 0;  ///< how many of the last are warm spares: on their own nodes, not ranks yet, unknown to MPI
    bool operator==(start_shims const&) const = default;
};

/// From the starter to an agent that has come: how it and its shims reach the launcher, whose connection it is to share out.
struct meet_launcher {
    int number = 0;         ///< of this agent: it may have been called without
    environment variables;  ///< MUSTER_LAUNCHER, MUSTER_TOKEN; none for a probe's agent, whose shims call by themselves
    duration lost_after{15};
    bool operator==(meet_launcher const&) const = default;
};

/// From an agent: its part of an exchange among these hosts' servers of PMIx or PMI-1; from the starter: the parts of all.
struct exchange {
    std::string name;
    std::string nodes;  ///< that take part, "0-3,7"; empty: all
    std::string data;
    bool operator==(exchange const&) const = default;
};

/// A question or an answer from one host's PMIx server to another's (pmix::modex_message).
struct modex {
    int node = 0;  ///< where it goes, and where it has come from
    int number = 0;
    int rank = -1;
    int status = 0;
    std::string data;
    bool operator==(modex const&) const = default;
};

/// From the starter: a block of rank 0's standard input. The agent answers with `taken` once the rank has it, for the next one.
struct input {
    std::string bytes;  ///< empty: it has ended
    bool operator==(input const&) const = default;
};

/// From an agent: rank 0 has that block of input.
struct taken {
    bool operator==(taken const&) const = default;
};

/// From an agent: all of its shims have ended. It waits for `bye`.
struct shims_ended {
    bool operator==(shims_ended const&) const = default;
};

/// The rank has come to its world's server of PMIx or PMI-1, or has left it in order: only where that server is muster's own.
struct met {
    bool left = false;
    bool operator==(met const&) const = default;
};

/// The rank has ended, and every `met` of it has been sent.
struct settled {
    bool operator==(settled const&) const = default;
};

/// A packet of that socket, from the rank or to it (pmix/member_message.hpp).
struct member_packet {
    std::string bytes;
    bool operator==(member_packet const&) const = default;
};

/// Of the states that ranks keep (launch/keep): a whole copy at a keeper.
struct kept_copy {
    int part = 0;
    bool of_neighbour = false;  ///< of a rank that ran on another node
    std::uint64_t step = 0;
    std::uint64_t generation = 0;  ///< in which it was committed, by this rank of so many
    int rank = 0, world_size = 1;
    bool operator==(kept_copy const&) const = default;
};

/// To a node's keeper, from the process that leads them.
struct keep_order {
    enum class kind : int {
        report,   ///< from now on, which step all ranks here have committed
        hold,     ///< the first commit of `step` or a later one, of each rank here
        send,     ///< what is held to the keeper at `address`
        release,  ///< all but `step`; end what is under way
        list,     ///< all that is here
        move,     ///< the copy of `part` and `step` to the keeper at `address`, as that of a rank there
        settle,  ///< the ranks of this node have `parts`; hold `step` of `generation`, or keep all of that if 0, and forget the rest
        adopt,  ///< the memory `file_id` of a keeper before this one, which ranks here still have open
    };
    kind what = kind::report;
    std::uint64_t round = 0;  ///< comes back with the answer
    std::uint64_t step = 0;
    std::uint64_t generation = 0;
    std::string address;
    int port = 0;
    std::string key;
    int part = 0;
    bool of_neighbour = false;  ///< where the copy of a move is
    std::vector<int> parts;
    std::uint64_t file_id = 0;
    bool operator==(keep_order const&) const = default;
};

/// From a keeper.
struct keep_word {
    enum class kind : int {
        there,    ///< at the start: the file for ranks here, and where other keepers reach it
        adopted,  ///< the same after `adopt`; `step`: of how many ranks that live; `file_id` is the keeper's own where nobody has that file any more
        newest,   ///< all ranks here have committed `step`; 0: one has not
        no_ranks,  ///< the last one that ran here has ended, perhaps before it committed
        held,      ///< by all ranks here: `step`, 0: not the same; `copies`: these
        sent,
        listed,
        moved,
        alive,  ///< once a second, also while it reads much
    };
    kind what = kind::there;
    std::uint64_t round = 0;
    std::uint64_t step = 0;
    std::string file;
    std::string address;
    int port = 0;
    std::string key;
    std::string fault;  ///< why it was not sent or moved
    std::vector<kept_copy> copies;
    std::uint64_t file_id = 0;  ///< by which this node tells `file` from others
    bool operator==(keep_word const&) const = default;
};

/// From the launcher to the process that leads the keepers: where the ranks of the next generation will run. It answers once their states are there.
struct place_states {
    std::vector<std::string> hosts;
    std::vector<int> ranks;  ///< of each, as pack_ranks writes them
    int world_size = 0;
    std::string session_dir;  ///< of that launcher
    bool operator==(place_states const&) const = default;
};
struct states_placed {
    std::vector<std::string> files;  ///< of each host; empty: there is no keeper
    std::vector<int> parts;          ///< of each rank, in its node's file
    int free_part = 0;               ///< from here on they are nobody's
    std::uint64_t step = 0;          ///< the newest that is whole for all ranks of a generation; 0: none
    int world_size = 0;              ///< of that generation
    std::vector<std::string> notes;
    bool under_way = false;  ///< not yet: this only tells that the answer will come
    bool operator==(states_placed const&) const = default;
};

/// New kinds come last: the place of a kind is its number on the wire.
using message = std::variant<hello, job, ready, go, started, failed, ended, gone, room, used_mpi, orphaned, signal, bye, examine,
                             report, reach, reached, asked_to_end, aborting, ping, pong, inspect, seen, gpus_used, start_shims,
                             input, taken, shims_ended, exchange, modex, met, settled, meet_launcher, member_packet, keep_order,
                             keep_word, place_states, states_placed>;

/// As CBOR (RFC 8949). Strings may hold any bytes.
std::string encode(message const& m);

/// Throws errc::invalid_data on anything that `encode` does not make.
message decode(std::string_view bytes);

}  // namespace muster::wire
