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
#include "launch/samples/run_samples.hpp"
#include "pmix/identity.hpp"

// The report of one node about itself, before ranks start there, and the question that it answers.

namespace muster {

/// Says what to inspect.
struct node_question {
    std::string program;             ///< as the user gave it; or empty
    std::string working_dir;         ///< absolute; or empty
    environment variables;           ///< the launcher's; the node adds its own as for a rank
    bool own_step = false;           ///< as in wire::job
    std::vector<std::string> names;  ///< names that must resolve there
    std::string address;             ///< the other nodes' name for this one
    std::string network_interface;
    duration limit{4};  ///< what is not known by then is left out, and listed as unfinished
    bool operator==(node_question const&) const = default;
};

struct folder_state {
    std::string path;
    std::uint64_t free_bytes = 0;
    std::string fault;  ///< why it is not writable there; empty: it is
    bool operator==(folder_state const&) const = default;
};

struct name_fault {
    std::string name;
    std::string fault;
    bool operator==(name_fault const&) const = default;
};

struct node_report {
    std::string version;  ///< its muster's
    std::string host;     ///< short name, from the node itself
    std::string address;  ///< where other nodes reach it, and the interface that has it
    std::string interface;
    std::string address_fault;
    int port = 0;  ///< the port where it accepts connections during the inspection
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
    double asked_at = 0;                  ///< when the question came, by the node's clock, in seconds since 1970
    double answered_at = 0;               ///< when this was sent
    bool operator==(node_report const&) const = default;
};

}  // namespace muster

namespace muster::wire {

/// The first message of a shim, after the launcher has proved that it has the run's key. A hello that opens proves the same of
/// the shim.
struct hello {
    std::string version;  ///< its muster's
    std::string host;     ///< its node's short name
    int rank = -1;        ///< the engine's number for it; -1: a probe
    int world_size = 0;
    long pid = 0;
    std::string step;    ///< the engine's name for all of this, by which to end it from outside: "4242.0"
    std::string fault;   ///< why it cannot go on (the engine's variables contradict each other); empty: all is well
    int agent = -1;      ///< the number of a host's agent, which carries its shims' messages; -1: a shim
    bool again = false;  ///< from a shim whose agent no longer carries anything
    bool operator==(hello const&) const = default;
};

/// All that a shim needs to know to place and start its rank.
struct job {
    identity who;
    placement_request place;
    std::vector<std::string> command;
    std::string working_dir;
    environment variables;             ///< the launcher's, except for those that identify the launcher
    std::vector<std::string> exports;  ///< -x NAME=VALUE, which also overrides what muster sets
    std::string output_dir;            ///< absolute; or empty
    std::uint64_t output_window = 0;   ///< bytes of output that the shim may send before it is given more room
    bool own_step = false;             ///< the engine's step consists of the ranks (srun): its variables stay
    std::string python_package;        ///< folders of the launcher's installation (python_folders), or empty
    std::string python_horovod;
    std::string network_interface;
    std::string address;      ///< the other nodes' name for this rank's node, with the site's rule applied
    std::string own_address;  ///< where other nodes reach this one, as its agent has found; empty: the shim looks for it
    duration grace{5};
    duration lost_after{15};
    bool hold_worker_port = false;   ///< the world is small enough for TF_CONFIG
    std::vector<soft_limit> limits;  ///< the launcher's, if it runs on one of the nodes; else the node's own apply
    int file_mask = -1;              ///< the launcher's umask; below 0: the node's own
    bool keeps_state = false;        ///< --keep-state, on other nodes at least
    std::string kept_file;           ///< the file of the node's keeper, for what its ranks commit; or empty
    std::vector<int> kept_parts;     ///< parts of such a file by rank, also for spares; empty: their numbers
    duration sample{0};              ///< between looks at the rank; 0: none
    bool in_place = false;           ///< the others may go on without a lost rank: each gets a socket (MUSTER_EVENTS)
    bool operator==(job const&) const = default;
};

/// A shim has placed its rank and holds its ports.
struct ready {
    int gpu_index = -1;  ///< in the node's PCI order; -1: no GPU
    std::string gpu_uuid;
    std::string cpus;  ///< "0-7", or empty: not bound
    std::string nic;
    std::string why;      ///< why the cores and the GPU were chosen
    std::string note;     ///< what the user should know about the node (share_note); mostly empty
    std::string address;  ///< where other nodes reach this one
    int master_port = 0;  ///< rank 0's
    int jax_port = 0;     ///< rank 0's
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

/// The rank could not be placed or started: nothing runs.
struct failed {
    std::string what;
    int exit_code = 125;
    bool operator==(failed const&) const = default;
};

/// The rank's program has ended; its descendants may be left.
struct ended {
    int wait_status = 0;
    std::string last_lines;  ///< those of its stderr
    bool asked = false;      ///< the engine or the scheduler had asked this shim, too, to end
    memory_verdict memory = memory_verdict::unknown;
    bool operator==(ended const&) const = default;
};

/// No process of the rank is left on its node; the shim waits for `bye`.
struct gone {
    bool operator==(gone const&) const = default;
};

/// The launcher grants these bytes more of the rank's output (frame_channel.hpp).
struct room {
    std::uint64_t bytes = 0;
    bool operator==(room const&) const = default;
};

/// The rank has initialised MPI, probably of this library.
struct used_mpi {
    std::string library;
    bool operator==(used_mpi const&) const = default;
};

/// The shim's starter (slurmstepd, orted) has died: the rank is being ended.
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

/// The launcher asks for an answer with the same number (`pong`).
struct ping {
    int number = 0;
    bool operator==(ping const&) const = default;
};
struct pong {
    int number = 0;
    int agent_missed = 0;  ///< earlier pings that a remote run's agent on the host has not answered
    bool operator==(pong const&) const = default;
};

/// The launcher asks the shim to inspect the rank, after it has run `command` about it, if there is one (--on-hang).
struct inspect {
    int number = 0;  ///< below 0: asks only who stands still; the answer's pid and state count, and its wait
    std::string command;
    bool operator==(inspect const&) const = default;
};

/// The shim's answer to `inspect`.
struct seen {
    int number = 0;
    process_sight sight;
    bool operator==(seen const&) const = default;
};

/// The launcher asks to send this to the rank and its descendants. With `stop` the rank has to end: SIGKILL follows after the
/// grace.
struct signal {
    int number = 0;
    bool stop = false;
    bool if_caught = false;  ///< only to processes that have a handler for it
    bool operator==(signal const&) const = default;
};

/// The launcher asks to end with this code.
struct bye {
    int exit_code = 0;
    bool operator==(bye const&) const = default;
};

/// The launcher asks a probe to inspect its node.
struct examine {
    node_question what;
    bool operator==(examine const&) const = default;
};

/// A probe reports what it has seen.
struct report {
    node_report node;
    bool operator==(report const&) const = default;
};

/// The launcher asks a probe to connect there, as ranks will connect to rank 0's node.
struct reach {
    std::string address;
    int port = 0;
    bool operator==(reach const&) const = default;
};

/// A probe says whether it has connected.
struct reached {
    std::string fault;  ///< empty: it has connected
    bool operator==(reached const&) const = default;
};

/// A look at the shim's rank and, of one shim on each node, at the node and the job's GPUs there; or a part of that (sample_sums).
struct sampled {
    node_sample look;  ///< without host and time; its rank has its number at the start
    bool operator==(sampled const&) const = default;
};

/// The starter of a remote run asks all hosts' agents, with the same message, to start the shims of their hosts. Each shim also
/// gets MUSTER_RANK and the like.
struct start_shims {
    std::vector<std::string> shim;  ///< argv
    environment variables;          ///< in addition to the agent's
    int world_size = 0;             ///< including spares
    std::string hosts;              ///< names of all nodes, in the order of the agents' numbers: "n[1-1000]"
    std::vector<int> ranks;         ///< the ranks of each host, as pack_ranks writes them (host_ranks.hpp)
    std::string nspace;
    std::string network_interface;
    bool serve_mpi = true;  ///< PMIx and PMI-1 for the ranks; not for probes
    duration lost_after{15};
    int spares = 0;  ///< how many of the last ranks are warm spares: on their own nodes, not ranks yet, unknown to MPI
    bool operator==(start_shims const&) const = default;
};

/// The starter tells an agent that has come how it and its shims reach the launcher; the agent shares its connection.
struct meet_launcher {
    int number = 0;         ///< this agent's: its start may not have named it
    environment variables;  ///< MUSTER_LAUNCHER, MUSTER_TOKEN; empty for a probe's agent, whose shims connect themselves
    duration lost_after{15};
    bool operator==(meet_launcher const&) const = default;
};

/// An agent sends its part of an exchange among these hosts' servers of PMIx or PMI-1; the starter sends the parts of all.
struct exchange {
    std::string name;
    std::string nodes;  ///< nodes that take part, "0-3,7"; empty: all
    std::string data;
    bool operator==(exchange const&) const = default;
};

/// A question or an answer from one host's PMIx server to another's (pmix::modex_message).
struct modex {
    int node = 0;  ///< the destination, and after that the origin
    int number = 0;
    int rank = -1;
    int status = 0;
    std::string data;
    bool operator==(modex const&) const = default;
};

/// The starter sends a block of rank 0's standard input. The agent answers with `taken` once the rank has it, and gets the next
/// one.
struct input {
    std::string bytes;  ///< empty: the input has ended
    bool operator==(input const&) const = default;
};

/// An agent says that rank 0 has that block of input.
struct taken {
    bool operator==(taken const&) const = default;
};

/// An agent says that all of its shims have ended, and waits for `bye`.
struct shims_ended {
    bool operator==(shims_ended const&) const = default;
};

/// The rank has connected to its world's server of PMIx or PMI-1, or has left it in order; sent only if that server is muster's
/// own.
struct met {
    bool left = false;
    bool operator==(met const&) const = default;
};

/// The rank has ended, and all its `met` have been sent.
struct settled {
    bool operator==(settled const&) const = default;
};

/// A packet of the rank's event socket, in either direction (pmix/member_message.hpp).
struct member_packet {
    std::string bytes;
    bool operator==(member_packet const&) const = default;
};

/// A whole copy at a keeper of a state that a rank keeps (launch/keep).
struct kept_copy {
    int part = 0;
    bool of_neighbour = false;  ///< from a rank that ran on another node
    std::uint64_t step = 0;
    std::uint64_t generation = 0;  ///< the generation in which this rank, of this world size, committed it
    int rank = 0, world_size = 1;
    bool operator==(kept_copy const&) const = default;
};

/// An order to a node's keeper, from the process that leads the keepers.
struct keep_order {
    enum class kind : int {
        report,   ///< report from now on which step all ranks here have committed
        hold,     ///< hold the first commit of `step` or a later one, of each rank here
        send,     ///< send what is held to the keeper at `address`
        release,  ///< release all but `step`; end what is in progress
        list,     ///< list all copies here
        move,     ///< move the copy of `part` and `step` to the keeper at `address`, as that of a rank there
        settle,   ///< this node's ranks have `parts`; hold `step` of `generation`, or all steps if it is 0, and forget the rest
        adopt,    ///< adopt the memory `file_id` of an earlier keeper, which ranks here still have open
    };
    kind what = kind::report;
    std::uint64_t round = 0;  ///< comes back with the answer
    std::uint64_t step = 0;
    std::uint64_t generation = 0;
    std::string address;
    int port = 0;
    std::string key;
    int part = 0;
    bool of_neighbour = false;  ///< where the copy to move is
    std::vector<int> parts;
    std::uint64_t file_id = 0;
    bool operator==(keep_order const&) const = default;
};

/// A keeper's message to the process that leads the keepers.
struct keep_word {
    enum class kind : int {
        there,     ///< at the start: the file for ranks here, and where other keepers reach it
        adopted,   ///< the same after `adopt`; `step`: how many ranks live; `file_id`: the keeper's own if nobody has that file
        newest,    ///< all ranks here have committed `step`; 0: a rank has not
        no_ranks,  ///< the last rank here has ended, perhaps before it committed
        held,      ///< all ranks here hold `step`, 0: different ones; `copies` lists them
        sent,
        listed,
        moved,
        alive,  ///< sent once a second, also while it reads much
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
    std::uint64_t file_id = 0;  ///< by which this node distinguishes `file` from others
    bool operator==(keep_word const&) const = default;
};

/// The launcher tells the process that leads the keepers where the next generation's ranks will run. That answers once their
/// states are there.
struct place_states {
    std::vector<std::string> hosts;
    std::vector<int> ranks;  ///< the ranks of each host, as pack_ranks writes them
    int world_size = 0;
    std::string session_dir;  ///< that launcher's
    bool operator==(place_states const&) const = default;
};
struct states_placed {
    std::vector<std::string> files;  ///< one for each host; empty: it has no keeper
    std::vector<int> parts;          ///< each rank's part in its node's file
    int free_part = 0;               ///< from here on parts are free
    std::uint64_t step = 0;          ///< the newest step that is whole for all ranks of a generation; or 0
    int world_size = 0;              ///< that generation's
    std::vector<std::string> notes;
    bool under_way = false;  ///< the answer will come later
    bool operator==(states_placed const&) const = default;
};

/// New kinds come last: the position of a kind is its number on the wire.
using message = std::variant<hello, job, ready, go, started, failed, ended, gone, room, used_mpi, orphaned, signal, bye, examine,
                             report, reach, reached, asked_to_end, aborting, ping, pong, inspect, seen, sampled, start_shims,
                             input, taken, shims_ended, exchange, modex, met, settled, meet_launcher, member_packet, keep_order,
                             keep_word, place_states, states_placed>;

/// Returns all members (base/codec/codec.hpp). Strings may contain any bytes.
std::string encode(message const& m);

/// Throws errc::invalid_data for any bytes that `encode` does not make.
message decode(std::string_view bytes);

}  // namespace muster::wire
