// The judge's table of cases: one for each way in which a run ends that tests/cluster and tests/cli see with real processes.
#include "launch/watch/failure_judge.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <functional>

namespace muster {
namespace {

using state = rank_evidence::state;
using step = verdict::step;

constexpr int sigkill = SIGKILL, sigterm = SIGTERM, sigsegv = SIGSEGV, sigpipe = SIGPIPE;  // as statuses of waitpid
constexpr int exited(int code) {
    return code << 8;
}

/// Ranks that run, `per_node` on each of node1, node2 …
evidence running(std::string engine, int ranks, int per_node) {
    evidence known;
    known.engine = std::move(engine);
    known.started = true;
    known.lived = duration(2);
    for (int r = 0; r < ranks; ++r) known.ranks.push_back({.rank = r, .node = r / per_node, .now = state::running});
    for (int n = 0; n * per_node < ranks; ++n) known.hosts.push_back("node" + std::to_string(n + 1));
    return known;
}

/// Ranks on this node, whose server of PMIx and PMI-1 is muster's own.
evidence here(int ranks = 4) {
    return running("", ranks, ranks);
}
evidence by_srun(int ranks = 8) {
    auto known = running("srun", ranks, 4);
    known.in_job = true;
    known.job_id = "7";
    return known;
}
evidence by_mpirun() {
    return running("mpirun", 4, 2);
}
evidence by_remote() {
    return running("remote", 4, 2);
}

void end(evidence& known, int rank, int status, memory_verdict memory = memory_verdict::none) {
    auto& one = known[rank];
    one.now = state::ended;
    one.wait_status = status;
    one.memory = memory;
    one.last_lines = "last words";
    one.left_early = status == 0;
    one.settled = known.engine.empty();
}
void lose(evidence& known, int first, int last, bool cut = false) {
    for (int r = first; r <= last; ++r) known[r].now = state::lost, known[r].cut = cut;
    if (known.first_lost < 0) known.first_lost = first;
}
void ask_all_to_end(evidence& known) {
    for (auto& rank : known.ranks) rank.to_end = rank_evidence::request::asked;
    known.asked = true;
}
void say(evidence& known, job_end word, std::vector<int> down = {}) {
    known.scheduler = scheduler_word{word, std::move(down)};
}

/// One case. `text` is what the user reads, or where it ends in "…" its beginning.
struct scenario {
    std::string name;
    std::function<verdict(evidence&)> judge;
    evidence known;
    step next;
    failure_cause cause = failure_cause::none;
    int exit_code = 0;
    std::vector<int> culprits{};
    std::string text{};
};

verdict end_of_1(evidence& known) {
    return judge_end(known, 1);
}
verdict cause(evidence& known) {
    return judge_cause(known);
}
verdict world(evidence& known) {
    return judge_world(known);
}
verdict engine_end(evidence& known) {
    return judge_engine_end(known);
}

template <typename... Changes>
evidence with(evidence known, Changes const&... changes) {
    (changes(known), ...);
    return known;
}

auto const ends = [](int rank, int status, memory_verdict memory = memory_verdict::none) {
    return [=](evidence& known) { end(known, rank, status, memory); };
};
auto const suspects = [](int rank) { return [=](evidence& known) { known.suspect = rank; }; };
auto const writes = [](int rank, std::string words) { return [=](evidence& known) { known[rank].last_lines = words; }; };
auto const left_behind = [](int rank) { return writes(rank, "rank 2 (node1) has ended the exchange and will not take part"); };
auto const lost_another = [](int rank) {
    return writes(rank, "allreduce on rank 1 on node1 of 3: it cannot finish: waiting for rank 2 on node1. Look at that rank");
};
auto const loses = [](int first, int last, bool cut = false) { return [=](evidence& known) { lose(known, first, last, cut); }; };
auto const says = [](job_end word, std::vector<int> down = {}) { return [=](evidence& known) { say(known, word, down); }; };
auto const asks = [](evidence& known) { ask_all_to_end(known); };
auto const may_start_again = [](evidence& known) { known.members = {0, 1, 2, 3}; };
auto const in_job = [](evidence& known) { known.in_job = true, known.job_id = "7"; };
auto const uses_mpi = [](evidence& known) {
    for (auto& rank : known.ranks) rank.uses_mpi = true;
};
auto const engine_ends = [](int status) { return [=](evidence& known) { known.engine_status = status; }; };
auto const meets = [](int first, int last) {
    return [=](evidence& known) {
        for (int r = first; r <= last; ++r) known[r].mpi = rank_evidence::world::inside;
    };
};
auto const step_is_cancelled = [](evidence& known) {  // of node2, whose agent is gone with it
    known.cancelled_step = "7.0";
    known[3].daemon_lost = "muster-agent";
    known.first_orphan = 3;
};
auto const cancels_step = [](wire_up speaks) {
    return [=](evidence& known) { known.cancelled_step = "7.0", known.speaks = speaks; };
};
auto const newcomer = [](evidence& known) {  // where the others run already
    known.ranks.push_back({.rank = 4, .spare = 0, .node = 2, .plays = rank_evidence::part::coming});
    known.hosts.push_back("node3");
};
auto const all_over = [](evidence& known) {
    for (auto& rank : known.ranks)
        if (rank.now != state::lost) rank.now = state::gone;
};

// clang-format off
std::vector<scenario> one_node() {
    return {
        // run_failures: a rank's own end
        {"a rank exits with a code of its own", end_of_1, with(here(), ends(1, exited(3))), step::end, failure_cause::rank_end, 3, {1},
         "rank 1 on node1 exited with code 3, 2 s after the start; ending the other 3"},
        {"a rank is killed", end_of_1, with(here(), ends(1, sigkill)), step::end, failure_cause::rank_end, 137, {1},
         "rank 1 on node1 was killed by signal 9 (SIGKILL), 2 s after the start; ending the other 3\n  muster did not send it…"},
        {"a rank falls", end_of_1, with(here(), ends(1, sigsegv)), step::end, failure_cause::rank_end, 139, {1},
         "rank 1 on node1 was killed by signal 11 (SIGSEGV), 2 s after the start; ending the other 3"},
        {"others ended well before", end_of_1, with(here(), ends(0, 0), ends(1, exited(5))), step::end, failure_cause::rank_end, 5, {1},
         "rank 1 on node1 exited with code 5, 2 s after the start; ending the other 2\n  rank 0 on node1 had ended with code 0 before that"},
        // run_failures: what a rank's own last words say of another
        {"a rank that another has left is held", end_of_1, with(here(), ends(1, exited(1)), left_behind(1)), step::hold,
         failure_cause::none, 0, {1}},
        {"the one that has left is blamed", end_of_1, with(here(), ends(0, exited(1)), left_behind(0), suspects(0), ends(1, exited(3))),
         step::end, failure_cause::rank_end, 3, {1}, "rank 1 on node1 exited with code 3, 2 s after the start; ending the other 2"},
        {"a rank that has lost another is held", end_of_1, with(by_remote(), ends(1, exited(1)), lost_another(1)), step::hold, failure_cause::none, 0, {1}},
        {"nor is one judged whose world another has left", end_of_1, with(here(), ends(1, exited(1)),
         writes(1, "allreduce of \"x\" (rank 1 of 4 on node1) cannot finish: rank 2 (node1): it has destroyed its communicator")),
         step::hold, failure_cause::none, 0, {1}},
        {"one that waited for a stopped rank is not to blame, the stopped one is", cause,
         with(here(), ends(1, exited(1)), writes(1, "cannot finish: waiting for rank 2 (node1): process 77 is stopped"), suspects(1), says(job_end::unknown)),
         step::end, failure_cause::rank_end, 1, {2}, "rank 2 on node1 is stopped, so rank 1 on node1, which waited for it, exited with code 1, 2 s after the start…"},
        {"another that was left is not", end_of_1,
         with(here(), ends(0, exited(1)), left_behind(0), suspects(0), ends(1, exited(1)), left_behind(1)), step::go_on},
        {"where none comes, the first", cause, with(here(), ends(1, exited(1)), left_behind(1), suspects(1), says(job_end::unknown)),
         step::end, failure_cause::rank_end, 1, {1}, "rank 1 on node1 exited with code 1, 2 s after the start; ending the other 3"},
        {"so it is in a run that may start again", end_of_1, with(here(), may_start_again, ends(1, exited(1)), left_behind(1)), step::hold,
         failure_cause::none, 0, {1}},
        {"where the one that has left is blamed", end_of_1,
         with(here(), may_start_again, ends(0, exited(1)), left_behind(0), suspects(0), ends(1, exited(3))), step::end, failure_cause::rank_end, 3,
         {1}, "rank 1 on node1 (member 1) exited with code 3, 2 s after the start; ending the other 2"},
        {"or else the first", cause,
         with(here(), may_start_again, ends(1, exited(1)), left_behind(1), suspects(1), says(job_end::unknown)), step::end, failure_cause::rank_end,
         1, {1}, "rank 1 on node1 (member 1) exited with code 1, 2 s after the start; ending the other 3"},
        {"nor is one judged that an engine has started, and whose run may start again", end_of_1,
         with(by_remote(), may_start_again, ends(1, exited(1)), lost_another(1)), step::hold, failure_cause::none, 0, {1}},
        {"by an engine too", end_of_1,
         with(by_remote(), ends(0, exited(1)), left_behind(0), suspects(0), [](evidence& known) { known.deciding = true; },
              ends(1, exited(3))),
         step::hold, failure_cause::none, 0, {1}},
        {"the last lines are told", end_of_1, with(here(), ends(1, exited(3)), [](evidence& known) { known.quotes = true; }), step::end,
         failure_cause::rank_end, 3, {1},
         "rank 1 on node1 exited with code 3, 2 s after the start; ending the other 3\n  the last it wrote on stderr:\n  | last words"},
        {"the GPU is named", end_of_1,
         with(here(), ends(1, exited(3)), [](evidence& known) { known[1].gpu_index = 1, known[1].gpu_uuid = "GPU-3f"; }), step::end,
         failure_cause::rank_end, 3, {1}, "rank 1 on node1 (GPU 1, GPU-3f) exited with code 3…"},
        {"a rank ends well", end_of_1, with(here(), ends(1, 0)), step::go_on},
        // run_memory
        {"memory was full", end_of_1, with(here(), ends(1, sigkill, memory_verdict::in_cgroup)), step::end, failure_cause::rank_end, 137, {1},
         "rank 1 on node1 was killed by signal 9 (SIGKILL): out of memory, 2 s after the start; ending the other 3\n  the kernel killed…"},
        {"a child was killed for want of memory", end_of_1, with(here(), ends(1, exited(9), memory_verdict::in_cgroup)), step::end,
         failure_cause::rank_end, 9, {1}, "rank 1 on node1 exited with code 9, 2 s after the start; ending the other 3\n  the kernel killed…"},
        {"memory was full in a job", end_of_1, with(here(), in_job, ends(1, sigkill, memory_verdict::in_cgroup)), step::end, failure_cause::rank_end,
         137, {1}, "rank 1 on node1 was killed by signal 9 (SIGKILL): out of memory…"},
        // run_output
        {"nobody reads the output", end_of_1, with(here(), ends(1, sigpipe), [](evidence& known) { known.reader_gone = true; }),
         step::end, failure_cause::reader_gone, 141},
        {"SIGPIPE of a rank's own", end_of_1, with(here(), ends(1, sigpipe)), step::end, failure_cause::rank_end, 141, {1},
         "rank 1 on node1 was killed by signal 13…"},
        // run_jobs, run_blame: in a job whose scheduler may have sent the signal
        {"a kill in a job is held", end_of_1, with(here(), in_job, ends(1, sigkill)), step::hold, failure_cause::none, 0, {1}},
        {"a fault in a job is not", end_of_1, with(here(), in_job, ends(1, sigsegv)), step::end, failure_cause::rank_end, 139, {1}, "rank 1…"},
        {"what comes behind it is a consequence", end_of_1, with(here(), in_job, ends(0, sigkill), suspects(0), ends(1, exited(3))), step::go_on},
        {"the scheduler is asked", cause, with(here(), in_job, ends(1, sigkill), suspects(1)), step::ask_scheduler},
        {"the job was cancelled", cause, with(here(), in_job, ends(1, sigterm), suspects(1), says(job_end::cancelled)), step::end,
         failure_cause::job_end, 143, {}, "job 7 was cancelled; ending 3 ranks"},
        {"all have ended with it", cause, with(here(2), in_job, ends(0, sigterm), ends(1, sigterm), suspects(0), says(job_end::out_of_time)),
         step::end, failure_cause::job_end, 143, {}, "job 7 is out of time"},
        {"the job has lost another node", cause, with(here(), in_job, ends(1, sigkill), suspects(1), says(job_end::node_failed)), step::end,
         failure_cause::job_end, 143, {}, "job 7 has lost a node, as the scheduler says; ending 3 ranks"},
        {"the job goes on: the rank it was", cause, with(here(), in_job, ends(1, sigkill), suspects(1), says(job_end::going_on)), step::end,
         failure_cause::rank_end, 137, {1}, "rank 1 on node1 was killed by signal 9 (SIGKILL)…"},
        // run_mpi_failures, run_worlds
        {"a rank aborts", cause, with(here(), meets(0, 3), [](evidence& known) { known.abort = {3, 42, "MPI_Abort or PMIx_Abort", "no data"}; }),
         step::end, failure_cause::abort, 42, {3},
         "rank 3 on node1 aborted the job with code 42 (MPI_Abort or PMIx_Abort): no data, 2 s after the start; ending the other 3"},
        {"an abort without a code is a failure", cause, with(here(), [](evidence& known) { known.abort = {3, 256, "MPI_Abort", ""}; }), step::end,
         failure_cause::abort, 1, {3}, "rank 3 on node1 aborted the job with code 256 (MPI_Abort)…"},
        {"a rank leaves its world", end_of_1, with(here(), meets(0, 3), ends(1, 0)), step::end, failure_cause::left_world, 1, {1},
         "rank 1 on node1 exited with code 0 but without MPI_Finalize, so the others would wait for it forever, 2 s after the start; ending the other 3\n  rank 1 on node1 had ended with code 0 before that\n  call MPI_Finalize on every path"},
        {"a rank ends behind MPI_Finalize", end_of_1,
         with(here(), meets(0, 3), ends(1, 0), [](evidence& known) { known[1].mpi = rank_evidence::world::left; }), step::go_on},
        {"a rank came up alone", end_of_1, with(here(2), ends(1, 0), [](evidence& known) { known[1].mpi_elsewhere = "libmpi.so"; }), step::end,
         failure_cause::singleton, 125, {1}, "rank 1 on node1 came up as a singleton: it uses libmpi.so but never connected to the other 1 ranks…"},
        {"a rank never came to MPI", end_of_1, with(here(), meets(0, 0), ends(1, 0)), step::end, failure_cause::singleton, 125, {1},
         "rank 1 on node1 came up as a singleton or without MPI: it exited with code 0 and never connected, and 1 of 4 ranks wait for it…"},
        {"others have left their world, too", world,
         with(here(), meets(0, 0), ends(1, 0), [](evidence& known) { known[0].mpi = rank_evidence::world::left; }), step::go_on},
        {"the first meets after another has ended", world, with(here(), ends(2, 0), meets(0, 0)), step::end, failure_cause::singleton, 125, {2},
         "rank 2 on node1 came up as a singleton…"},
        {"singletons are meant", world, with(here(2), meets(0, 0), ends(1, 0), [](evidence& known) { known.allow_singletons = true; }), step::go_on},
        {"a world of one", end_of_1, with( here(2), [](evidence& known) { known.ranks.erase(known.ranks.begin()); },
         [](evidence& known) { known.ranks[0].rank = 0; },
         [](evidence& known) { known.ranks.push_back(known.ranks[0]), known.ranks[1].rank = 1; }, ends(1, 0)), step::go_on},
    };
}

std::vector<scenario> several_nodes() {
    return {
        // run_failures, remote, engines: a rank's own end
        {"a rank exits", end_of_1, with(by_srun(), ends(1, exited(3))), step::end, failure_cause::rank_end, 3, {1},
         "rank 1 on node1 exited with code 3, 2 s after the start; ending the other 7"},
        {"a kill is held", end_of_1, with(by_srun(), ends(1, sigkill)), step::hold, failure_cause::none, 0, {1}},
        {"so is a fault of an MPI rank", end_of_1, with(by_srun(), uses_mpi, ends(1, exited(3))), step::hold, failure_cause::none, 0, {1}},
        {"and any where something is held", end_of_1, with(by_srun(), ends(1, exited(3)), [](evidence& known) { known.deciding = true; }), step::hold,
         failure_cause::none, 0, {1}},
        {"the first suspect stays", end_of_1, with(by_srun(), ends(0, sigkill), suspects(0), ends(1, sigkill)), step::hold},
        {"unless it had been asked to end", end_of_1, with(
         by_srun(), ends(0, sigterm), suspects(0), [](evidence& known) { known[0].to_end = rank_evidence::request::asked; }, ends(1, sigkill)), step::hold, failure_cause::none,
         0, {1}},
        {"or Open MPI 5 aborted because others were gone", end_of_1,
         with(by_srun(), uses_mpi, ends(0, exited(14)), suspects(0), ends(1, sigkill)), step::hold, failure_cause::none, 0, {1}},
        {"a node is full", end_of_1, with(by_srun(), ends(1, sigkill, memory_verdict::in_cgroup)), step::end, failure_cause::rank_end, 137, {1},
         "rank 1 on node1 was killed by signal 9 (SIGKILL): out of memory…"},
        {"a killed rank is named", cause, with(by_srun(), ends(5, sigkill), suspects(5), says(job_end::going_on)), step::end, failure_cause::rank_end,
         137, {5}, "rank 5 on node2 was killed by signal 9 (SIGKILL), 2 s after the start; ending the other 7…"},
        {"others were killed with it", cause, with(by_srun(), uses_mpi, ends(5, exited(3)), suspects(5), loses(6, 7), says(job_end::going_on), engine_ends(exited(3))),
         step::end, failure_cause::rank_end, 3, {5},
         "rank 5 on node2 exited with code 3, 2 s after the start; ending the other 5\n  srun killed others at the same moment: another rank may have failed first"},
        // run_failures: MPI
        {"MPI_Abort", cause, with(by_srun(), uses_mpi, asks, [](evidence& known) { known.abort = {.rank = 5, .code = 42}; }), step::end,
         failure_cause::abort, 42, {5}, "rank 5 on node2 aborted the job with code 42 (MPI_Abort), 2 s after the start; ending the other 7"},
        {"a world may have been aborted: srun's code is waited for", cause,
         with(by_srun(), uses_mpi, ends(5, sigterm), suspects(5), loses(6, 7), says(job_end::going_on)), step::hold},
        {"it is the code that a rank has given", cause,
         with(by_srun(), uses_mpi, ends(5, sigterm), suspects(5), ends(4, exited(42)), loses(6, 7), says(job_end::going_on), engine_ends(exited(42))),
         step::end, failure_cause::rank_end, 42, {4}, "rank 4 on node2 exited with code 42…"},
        {"nobody has told of that rank", cause,
         with(by_srun(), uses_mpi, ends(5, sigterm), suspects(5), loses(6, 7), says(job_end::going_on), engine_ends(exited(42))), step::end,
         failure_cause::engine, 42, {}, "srun ended its ranks and exited with code 42 (MPI_Abort of a rank…"},
        {"it is only Open MPI 5's word that others are gone", cause,
         with(by_srun(), uses_mpi, ends(5, sigkill), suspects(5), loses(6, 7), says(job_end::going_on), engine_ends(exited(14))), step::end,
         failure_cause::rank_end, 137, {5},
         "rank 5 on node2 was killed by signal 9 (SIGKILL), 2 s after the start; ending the other 5\n  srun killed others at the same moment: another rank may have failed first"},
        {"srun has no code of its own", cause,
         with(by_srun(), uses_mpi, ends(5, sigterm), suspects(5), loses(6, 7), says(job_end::going_on), engine_ends(exited(143))), step::end,
         failure_cause::rank_end, 143, {5}, "rank 5 on node2 was killed by signal 15 (SIGTERM)…"},
        {"a rank leaves its world, and another dies of it", cause,
         with(by_srun(), uses_mpi, ends(5, 0), ends(6, sigkill), suspects(6), says(job_end::going_on)), step::end, failure_cause::left_world, 1, {5},
         "rank 5 on node2 exited with code 0 while others were in its MPI world, so probably without MPI_Finalize, and then rank 6 on node2 was killed by signal 9 (SIGKILL); ending 6 ranks; call MPI_Finalize on every path"},
        {"a fault of its own behind MPI_Finalize", cause,
         with(by_srun(), uses_mpi, ends(5, 0), ends(6, sigsegv), suspects(6), says(job_end::going_on)), step::end, failure_cause::rank_end, 139, {6},
         "rank 6 on node2 was killed by signal 11…"},
        {"a leaver whose world was killed, watchers too", cause,
         with(by_srun(), ends(5, 0), loses(0, 4), loses(6, 7), all_over, says(job_end::going_on), engine_ends(exited(1))), step::end,
         failure_cause::left_world, 1, {5}, "rank 5 on node2 exited with code 0, probably without MPI_Finalize, and srun then ended the others…"},
        {"left its world, as its server says", world, with(by_remote(), meets(0, 3), ends(1, 0), [](evidence& known) { known[1].settled = true; }),
         step::end, failure_cause::left_world, 1, {1}, "rank 1 on node1 exited with code 0 but without MPI_Finalize…"},
        {"has not settled yet", world, with(by_remote(), meets(0, 3), ends(1, 0)), step::go_on},
        {"never came to the world of others", world, with(by_remote(), meets(0, 0), ends(1, 0), [](evidence& known) { known[1].settled = true; }),
         step::end, failure_cause::singleton, 125, {1}, "rank 1 on node1 came up as a singleton or without MPI…"},
        // run_blame: the scheduler
        {"the job was cancelled", cause, with(by_srun(), asks, says(job_end::cancelled)), step::end, failure_cause::job_end, 143, {},
         "job 7 was cancelled; ending 8 ranks"},
        {"though ranks end well at it", cause, with(by_srun(), asks, ends(0, 0), says(job_end::cancelled)), step::end, failure_cause::job_end, 143,
         {}, "job 7 was cancelled; ending 7 ranks"},
        {"it is out of time", cause, with(by_srun(), ends(5, sigterm), suspects(5), says(job_end::out_of_time)), step::end, failure_cause::job_end,
         143, {}, "job 7 is out of time; ending 7 ranks"},
        {"it was preempted", cause, with(by_srun(), asks, says(job_end::preempted)), step::end, failure_cause::job_end, 143, {},
         "job 7 was preempted by another job; ending 8 ranks"},
        {"it has lost a node", cause, with(by_srun(), asks, says(job_end::node_failed, {1})), step::end, failure_cause::node, 125, {4, 5, 6, 7},
         "job 7 has lost a node, as the scheduler says (ranks 4-7 on node2); ending 4 ranks"},
        {"of a run that would go on", cause,
         with(by_srun(), asks, says(job_end::node_failed, {1}), [](evidence& known) { known.keeps_nodes = true; }), step::end,
         failure_cause::node, 125, {4, 5, 6, 7},
         "job 7 has lost a node, as the scheduler says (ranks 4-7 on node2); ending 4 ranks; Slurm ends such a job with it: to go on, "
         "ask for the job with --no-kill"},
        {"which one is not known", cause, with(by_srun(), asks, says(job_end::node_failed)), step::end, failure_cause::node, 125, {},
         "job 7 has lost a node, as the scheduler says; ending 8 ranks"},
        {"it goes on without a node", cause, with(by_srun(), asks, says(job_end::going_on, {1})), step::end, failure_cause::node, 125, {4, 5, 6, 7},
         "job 7 has lost a node, as the scheduler says (ranks 4-7 on node2); ending 4 ranks"},
        {"a node is lost that has no rank", cause, with(by_srun(), ends(5, sigkill), suspects(5), says(job_end::going_on, {9})), step::end,
         failure_cause::rank_end, 137, {5}, "rank 5 on node2…"},
        {"a signal that ranks live on after", cause, with(by_srun(), asks, says(job_end::going_on), engine_ends(0)), step::go_on},
        // run_blame, remote, engines: watchers, daemons, the engine
        {"the engine was killed", cause, with(by_srun(), loses(0, 7, true), engine_ends(sigkill), says(job_end::going_on)), step::end,
         failure_cause::engine, 125, {}, "srun was killed by signal 9 (SIGKILL), and with it the start of the ranks was lost"},
        {"a step was cancelled over remote", cause, with(by_remote(), step_is_cancelled, says(job_end::going_on)), step::end, failure_cause::job_end, 143, {},
         "step 7.0 was cancelled; ending 4 ranks"},
        {"a step was cancelled over srun, and a rank's end is held", cause, with(by_srun(), step_is_cancelled, ends(0, sigkill), suspects(0),
         engine_ends(exited(137)), says(job_end::going_on)), step::end, failure_cause::job_end, 143, {}, "step 7.0 was cancelled; ending 7 ranks"},
        {"a step of MPI ranks was cancelled, or one has called MPI_Abort: srun's code will say", cause, with(by_srun(), cancels_step(wire_up::pmix), uses_mpi,
         loses(0, 7), says(job_end::going_on)), step::hold},
        {"it was cancelled", cause, with(by_srun(), cancels_step(wire_up::pmix), uses_mpi, loses(1, 7), ends(0, sigkill), suspects(0),
         engine_ends(exited(137)), says(job_end::going_on)), step::end, failure_cause::job_end, 143, {}, "step 7.0 was cancelled"},
        {"a rank has called MPI_Abort", cause, with(by_srun(), cancels_step(wire_up::pmix), uses_mpi, loses(0, 7), engine_ends(exited(42)),
         says(job_end::going_on)), step::end, failure_cause::engine, 42, {},
         "srun ended its ranks and exited with code 42 (MPI_Abort of a rank, a fault of srun, or a limit of the scheduler: see above)"},
        {"a rank has fallen", cause, with(by_srun(), cancels_step(wire_up::pmix), uses_mpi, ends(5, sigsegv), suspects(5), loses(6, 7),
         engine_ends(exited(137)), says(job_end::going_on)), step::end, failure_cause::rank_end, 139, {5}, "rank 5 on node2 was killed by signal 11…"},
        {"with PMI-2 nothing says which", cause, with(by_srun(), cancels_step(wire_up::pmi), uses_mpi, loses(0, 7), engine_ends(exited(137)),
         says(job_end::going_on)), step::end, failure_cause::engine, 137, {},
         "srun ended its ranks and exited with code 137 (MPI_Abort of a rank, or step 7.0 was cancelled: see above)"},
        {"the job was cancelled, and its step with it", cause, with(by_remote(), step_is_cancelled, says(job_end::cancelled)), step::end,
         failure_cause::job_end, 143, {}, "the job was cancelled; ending 4 ranks"},
        {"the starter was killed", cause, with(by_remote(), engine_ends(sigkill), says(job_end::unknown)), step::end, failure_cause::engine, 125, {},
         "remote was killed by signal 9 (SIGKILL), and with it the start of the ranks was lost; ending 4 ranks"},
        {"a watcher was killed", cause, with(by_srun(), loses(5, 5, true), says(job_end::going_on)), step::end, failure_cause::watcher, 125, {5},
         "the watcher of rank 5 on node2 was killed; ending 7 ranks"},
        {"a guard was killed, and mpirun ended its daemons then", cause, with(by_mpirun(), says(job_end::unknown), [](evidence& known) {
         known[3].to_end = rank_evidence::request::guard_killed; known.first_killed = 3; for (auto& rank : known.ranks) rank.daemon_lost = "orted"; }), step::end,
         failure_cause::watcher, 125, {3}, "the watcher of rank 3 on node2 was killed; ending 4 ranks"},
        {"a daemon died", cause, with(by_mpirun(), says(job_end::unknown), [](evidence& known) { known[3].daemon_lost = "orted";
         known.first_orphan = 3; }), step::end, failure_cause::daemon, 125, {2, 3},
         "orted on node2 died, which had started ranks 2-3 on node2; ending 4 ranks"},
        {"Hydra tells its own killed watcher's end as that of all", cause,
         with(running("mpiexec", 4, 2), loses(0, 3), says(job_end::unknown), engine_ends(exited(9)), [](evidence& known) { known.first_killed = 2; }),
         step::end, failure_cause::watcher, 125, {2}, "the watcher of rank 2 on node2 was killed"},
        {"the last node is gone where others ended well", cause,
         with(by_remote(), ends(0, 0), ends(1, 0), all_over, loses(2, 3), says(job_end::unknown), [](evidence& known) { known.engine_awaited = true; }),
         step::end, failure_cause::node, 125, {2, 3}, "lost ranks 2-3 on node2: the node is gone, or what started the ranks there was killed"},
        {"the engine's code is waited for", cause, with(by_srun(), asks, says(job_end::going_on)), step::hold},
        {"and only once", cause, with(by_srun(), asks, says(job_end::going_on), [](evidence& known) { known.engine_awaited = true; }), step::go_on},
        {"the engine has ended its ranks", cause, with(by_srun(), asks, says(job_end::going_on), engine_ends(exited(42))), step::end,
         failure_cause::engine, 42, {},
         "srun ended its ranks and exited with code 42 (MPI_Abort of a rank, a fault of srun, or a limit of the scheduler: see above)"},
        {"a signal was sent to all by the engine", cause,
         with(by_srun(), ends(5, sigterm), suspects(5), asks, says(job_end::going_on), engine_ends(0)), step::end, failure_cause::job_end, 143, {5},
         "rank 5 on node2 was killed by signal 15 (SIGTERM), which srun or the scheduler had sent to its ranks; ending 7 ranks"},
        // run_failures, remote: nodes
        {"a node is gone", cause, with(by_srun(), loses(4, 7), says(job_end::going_on), engine_ends(0)), step::end, failure_cause::node, 125,
         {4, 5, 6, 7}, "lost ranks 4-7 on node2: the node is gone, or what started the ranks there was killed; ending 4 ranks"},
        {"a slurmstepd was killed with all it had started", cause, with(by_srun(), loses(4, 7, true), says(job_end::going_on)), step::end,
         failure_cause::watcher, 125, {4, 5, 6, 7}, "the watchers of ranks 4-7 on node2 were killed; ending 4 ranks"},
        // the surest word first
        {"srun was killed with its job", cause, with(by_srun(), loses(0, 7, true), engine_ends(sigkill), says(job_end::cancelled)), step::end,
         failure_cause::job_end, 143, {}, "job 7 was cancelled"},
        {"daemons died of their engine's end", cause,
         with(by_mpirun(), engine_ends(sigkill), says(job_end::unknown), [](evidence& known) { known.first_orphan = 3; }), step::end,
         failure_cause::engine, 125, {}, "mpirun was killed by signal 9 (SIGKILL), and with it the start of the ranks was lost; ending 4 ranks"},
        {"a watcher was lost when a rank was killed", cause,
         with(by_srun(), ends(5, sigkill), suspects(5), loses(6, 6, true), says(job_end::going_on)), step::end, failure_cause::rank_end, 137, {5},
         "rank 5 on node2…"},
        {"all were asked to end when a watcher was killed", cause, with(by_srun(), asks, loses(5, 5, true), says(job_end::going_on)), step::end,
         failure_cause::watcher, 125, {5}, "the watcher of rank 5 on node2 was killed; ending 7 ranks"},
        // run_blame: a node that is dead before the ranks start
        {"ranks have not come up, and the engine gives up", cause, with(by_srun(), says(job_end::going_on), engine_ends(exited(1)),
         [](evidence& known) { known.started = false; for (auto& rank : known.ranks) rank.now = rank.node == 1 ? state::absent : state::lost; }),
         step::end, failure_cause::never_came, 125, {4, 5, 6, 7},
         "srun exited with code 1 before 4 of 8 ranks came up: ranks 4-7 on node2; see its own message above, and check those nodes with muster doctor --allocation"},
        {"its code is waited for", cause, with(by_srun(), says(job_end::going_on), [](evidence& known) { known.started = false;
         for (auto& rank : known.ranks) rank.now = rank.node == 1 ? state::absent : state::placing; }), step::hold},
        // engines, remote: the engine ends first
        {"it could not start ranks", engine_end, with(by_srun(), engine_ends(exited(1)), [](evidence& known) { known.started = false;
         for (auto& rank : known.ranks) rank.now = state::absent; }), step::end, failure_cause::never_came, 125, {0, 1, 2, 3, 4, 5, 6, 7},
         "srun exited with code 1 before 8 of 8 ranks came up (ranks 0-3 on node1, ranks 4-7 on node2); its own message is above; check that every node has this muster at the same path, and see the command with --dry-run"},
        {"a name is unknown", engine_end, with(by_mpirun(), engine_ends(exited(1)), [](evidence& known) { known.started = false;
         known.unknown_hosts = {"nowhere"};
             for (auto& rank : known.ranks) rank.now = state::absent; }), step::end, failure_cause::never_came, 125,
         {0, 1, 2, 3}, "mpirun exited with code 1 before 4 of 4 ranks came up (ranks 0-1 on node1, ranks 2-3 on node2); its own message is above; no address is known here of nowhere: correct the name"},
        {"remote has named the host", engine_end, with(by_remote(), engine_ends(exited(125)), [](evidence& known) { known.started = false;
         known[2].now = state::absent; }), step::end, failure_cause::never_came, 125, {},
         "no rank was started, for the reason above; muster doctor --allocation examines every node"},
        {"a newcomer is on its way", engine_end, with(by_remote(), newcomer, engine_ends(exited(1))), step::end, failure_cause::engine, 1, {},
         "remote exited with code 1 while 4 of 5 ranks were running"},
        {"a newcomer is on its way where a rank is lost", cause, with(by_remote(), newcomer, loses(1, 1), says(job_end::unknown), engine_ends(exited(1))),
         step::end, failure_cause::engine, 1, {}, "remote ended its ranks and exited with code 1…"},
        {"it ends while ranks run", engine_end, with(by_srun(), engine_ends(0)), step::end, failure_cause::engine, 125, {},
         "srun exited with code 0 while 8 of 8 ranks were running"},
        {"something else was seen before", engine_end, with(by_srun(), loses(4, 7), engine_ends(exited(1))), step::ask_scheduler},
        {"every rank ended well, and the engine did not", [](evidence& known) { return judge_late_engine(known); },
         with(by_srun(), all_over, engine_ends(exited(3))), step::end, failure_cause::engine, 3, {},
         "every rank ended well, but srun exited with code 3; its own message is above"},
        // run_failures, run_blame, remote: silence
        {"a node is silent", [](evidence& known) { return judge_silence(known, {4, 5, 6, 7}, duration(2)); }, by_srun(), step::end,
         failure_cause::node, 125, {4, 5, 6, 7},
         "lost ranks 4-7 on node2: nothing there has answered for 2 s (--heartbeat), and other nodes have: without power, cut off or stopped; ending 4 ranks"},
        {"a watcher is stopped", [](evidence& known) { return judge_silence(known, {5}, duration(2)); }, by_srun(), step::end, failure_cause::watcher,
         125, {5}, "the watcher of rank 5 on node2 has not answered for 2 s (--heartbeat), and others have: stopped, perhaps; ending 7 ranks"},
        {"the job is suspended", [](evidence& known) { return judge_silence(known, {0, 1, 2, 3, 4, 5, 6, 7}, duration(2)); }, by_srun(), step::go_on},
        {"all answer", [](evidence& known) { return judge_silence(known, {}, duration(2)); }, by_srun(), step::go_on},
        {"an agent is stopped", [](evidence& known) { return judge_silent_agent(known, 3, duration(2)); }, by_remote(), step::end,
         failure_cause::daemon, 125, {2, 3},
         "muster-agent, which had started ranks 2-3 on node2, has not answered for 2 s (--heartbeat): stopped, perhaps; ending 4 ranks"},
        {"an agent is lost early", [](evidence& known) { return blame_agent(known, 3); }, by_remote(), step::end, failure_cause::daemon, 125, {2, 3},
         "muster-agent was lost before all ranks were there: that of ranks 2-3 on node2"},
        // run_failures, run_blame: SIGTERM to the launcher
        {"SIGTERM by a user", [](evidence& known) { return explain_request_to_end(known); }, with(by_srun(), says(job_end::going_on)), step::go_on},
        {"SIGTERM by the scheduler", [](evidence& known) { return explain_request_to_end(known); }, with(by_srun(), says(job_end::cancelled)),
         step::end, failure_cause::job_end, 0, {}, "job 7 was cancelled"},
        {"SIGTERM because a node is lost", [](evidence& known) { return explain_request_to_end(known); },
         with(by_srun(), says(job_end::node_failed, {1})), step::end, failure_cause::node, 125, {4, 5, 6, 7},
         "job 7 has lost a node, as the scheduler says (ranks 4-7 on node2)"},
    };
}

// clang-format on

void expect_all(std::vector<scenario> table) {
    for (auto& one : table) {
        SCOPED_TRACE(one.name);
        auto const judged = one.judge(one.known);
        EXPECT_EQ(judged.next, one.next);
        EXPECT_EQ(judged.cause, one.cause);
        EXPECT_EQ(judged.exit_code, one.exit_code);
        std::vector<int> culprits;
        for (auto const& culprit : judged.culprits) {
            culprits.push_back(culprit.rank);
            EXPECT_EQ(culprit.host, one.known.host_of(one.known[culprit.rank]));
        }
        EXPECT_EQ(culprits, one.culprits);
        if (one.text.ends_with("…"))
            EXPECT_EQ(judged.text.substr(0, one.text.size() - 3), one.text.substr(0, one.text.size() - 3));
        else
            EXPECT_EQ(judged.text, one.text);
    }
}

TEST(failure_judge, names_the_culprit_on_one_node) {
    expect_all(one_node());
}

TEST(failure_judge, names_the_culprit_on_several_nodes) {
    expect_all(several_nodes());
}

TEST(failure_judge, gives_up_ranks_that_nobody_answers_for) {
    auto known = with(by_srun(), asks, says(job_end::node_failed, {1}));
    EXPECT_TRUE(judge_cause(known).gives_up);
    EXPECT_TRUE(judge_silence(known, {5}, duration(2)).gives_up);
    EXPECT_FALSE(judge_cause(with(by_srun(), loses(5, 5, true), says(job_end::going_on))).gives_up);
}

TEST(failure_judge, a_failure_of_a_rank_is_told_from_one_of_the_run) {
    EXPECT_TRUE(judge_end(with(by_srun(), ends(1, exited(3))), 1).of_rank);
    EXPECT_FALSE(judge_cause(with(by_srun(), loses(5, 5, true), says(job_end::going_on))).of_rank);
}

TEST(failure_judge, blames_nobody_who_ended_well_where_no_engine_ends_the_others) {
    auto known = with(here(2), [](evidence& it) {
        it.members = {0, 1};
    });  // the job was to say what has killed rank 1, and the others have gone on without it meanwhile
    end(known, 1, SIGKILL), end(known, 0, exited(0));
    number_anew(known, {0}, {0});
    known[0].now = known[1].now = state::gone;
    say(known, job_end::going_on);
    EXPECT_EQ(judge_cause(known), verdict{});
}

TEST(evidence, finds_one_that_left_its_world_while_most_are_still_in_it) {
    auto known = by_mpirun();
    EXPECT_EQ(known.find_leaver(-1), nullptr);
    known[2].left_early = true;
    EXPECT_EQ(known.find_leaver(-1), nullptr) << "a program without MPI may end when it likes";
    known[2].uses_mpi = true;
    ASSERT_NE(known.find_leaver(-1), nullptr);
    EXPECT_EQ(known.find_leaver(-1)->rank, 2);
    EXPECT_NE(known.find_leaver(3), nullptr);
    known[0].left_early = known[0].uses_mpi = true;
    EXPECT_EQ(known.find_leaver(3), nullptr) << "where others leave too, they are behind MPI_Finalize";
}

TEST(evidence, those_that_leave_are_no_spares) {
    auto known = with(by_remote(), newcomer);
    known[2].plays = rank_evidence::part::left_out, known[4].now = state::running;
    EXPECT_EQ(known.count_running(), "4 ranks and 1 spare");
}
TEST(evidence, a_row_tells_what_has_become_of_its_rank) {
    auto known = by_mpirun();
    end(known, 0, exited(3));
    known[1].now = state::lost;
    known[2].now = state::absent;
    known[3].now = state::ready;
    auto const unseen = [](int) -> process_sight const* { return nullptr; };
    auto const rows = known.rows(unseen);
    EXPECT_EQ(rows[0].end, "exited with code 3");
    EXPECT_EQ(rows[1].end, "is lost");
    EXPECT_EQ(rows[2].end, "has not come up");
    EXPECT_EQ(rows[3].end, "waits for ranks that have not come up");
    known[1].now = state::running;
    EXPECT_EQ(known.rows(unseen)[1].now, rank_row::life::silent);
    known.engine.clear();
    EXPECT_EQ(known.rows(unseen)[2].end, "was not started");
}

TEST(failure_judge, says_what_a_restart_may_mend) {
    auto started = here();
    auto starting = here();
    starting.started = false;
    auto ended_job = by_srun();
    ended_job.scheduler = scheduler_word{.end = job_end::cancelled};
    auto going_on = by_srun();
    going_on.scheduler = scheduler_word{.end = job_end::going_on};
    auto const kind = [](failure_cause cause, evidence const& known, bool first) {
        return kind_of_end(blame_run(cause, "x", 1), known, first);
    };
    using cause = failure_cause;
    for (auto const of_rank : {cause::rank_end, cause::abort, cause::left_world}) {
        EXPECT_EQ(kind(of_rank, started, true), end_kind::rank);
        EXPECT_EQ(kind(of_rank, going_on, true), end_kind::rank);
        EXPECT_EQ(kind(of_rank, starting, true), end_kind::last) << "a fault of the start";
        EXPECT_EQ(kind(of_rank, starting, false), end_kind::rank) << "it has started before";
        EXPECT_EQ(kind(of_rank, ended_job, true), end_kind::last) << "the job ends";
    }
    for (auto const of_start : {cause::engine, cause::daemon, cause::watcher}) {
        EXPECT_EQ(kind(of_start, started, true), end_kind::other);
        EXPECT_EQ(kind(of_start, starting, true), end_kind::last);
    }
    EXPECT_EQ(kind(cause::node, started, true), end_kind::node);
    EXPECT_EQ(kind(cause::node, ended_job, false), end_kind::last);
    EXPECT_EQ(kind(cause::never_came, starting, true), end_kind::last);
    EXPECT_EQ(kind(cause::never_came, starting, false), end_kind::other);
    for (auto const never : {cause::none, cause::singleton, cause::job_end, cause::reader_gone, cause::output})
        EXPECT_EQ(kind(never, started, false), end_kind::last);
}

}  // namespace
}  // namespace muster
