// The program `muster-simulate`: runs muster's collectives on a modelled platform by SimGrid; reads a job, prints its times.
#include <mpi.h>
#include <sched.h>

#include <xbt/log.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <simgrid/s4u.hpp>
#include <string>

#include "base/command/command_set.hpp"
#include "base/log.hpp"
#include "bench/predict/simulator/ring_allreduce.hpp"
#include "bench/predict/simulator/simulator.hpp"
#include "bench/tools/checked_json.hpp"
#include "comm/communicator.hpp"

namespace {

using namespace muster;
namespace s4u = simgrid::s4u;

// The program of one simulated rank: steps of training by muster's communicator.

/// What the ranks share: they are contexts of one process, and run one at a time.
struct simulated_world {
    simulation_job const& job;
    simulation_result result;
    std::vector<float> memory;  ///< the gradients of every rank, in one place
};

double now() {
    return simgrid::s4u::Engine::get_clock();
}

void pass(double seconds) {
    if (seconds > 0) simgrid::s4u::this_actor::sleep_for(seconds);
}

/// All ranks of the process have one name of host: more than it has processors, so that a waiting rank yields at once.
identity identity_of(simulation_job const& job, int rank) {
    int const width = job.platform.ranks_a_node;
    identity who;
    who.nspace = "simulated";
    who.rank = rank;
    who.world_size = job.ranks;
    who.node_rank = rank / width;
    who.node_count = (job.ranks + width - 1) / width;
    who.local_rank = rank % width;
    who.local_size = std::min(width, job.ranks - who.node_rank * width);
    who.host = "simulated";
    who.from = identity::source::muster;
    return who;
}

comm_options options_for(identity const& who) {
    comm_options options;
    options.deadline = duration{0};  // deadlines are of real time
    options.backend = who.node_count > 1 && who.world_size > who.node_count ? "hierarchical" : "mpi";
    return options;
}

/// All ranks leave at the same moment, as no barrier does: so a time counts the collective alone.
void line_up(communicator& ranks) {
    ranks.barrier().wait();
    constexpr double grid = 1e-2;
    simgrid::s4u::this_actor::sleep_until((std::floor(now() / grid) + 2) * grid);
}

constexpr int steps = 2;     // the last one is told
constexpr int slices = 100;  // of the backward pass: communication moves on between them

/// Steps whose gradients are averaged in buckets, which are cut as muster.torch cuts them: in the order in which the backward pass
/// completes them, a small one first.
class training {
  public:
    training(simulated_world& world, communicator& ranks) : world_(world), job_(world.job), ranks_(ranks) {
        for (std::size_t const each : job_.tensors) elements_ += each;
    }

    void run() {
        for (int step = 0; step < steps; ++step) {
            line_up(ranks_);
            double const begin = now();
            double const exposed = run_step();
            if (step + 1 < steps) continue;
            auto& result = world_.result;
            if (now() - begin >= result.step_s) result.exposed_s = exposed;
            result.step_s = std::max(result.step_s, now() - begin);
        }
    }

  private:
    /// The backward pass takes its time in proportion to the elements, in slices between which communication moves on.
    double run_step() {
        pass(job_.input_s + job_.forward_s);
        double const slice = job_.backward_s / slices;
        float* first = world_.memory.data();
        std::size_t ready = 0;
        std::vector<operation> under_way;
        for (std::size_t i = 0; i < job_.tensors.size(); ++i) {
            double const share = job_.backward_s * static_cast<double>(job_.tensors[i]) / static_cast<double>(elements_);
            int const pieces = slice > 0 ? std::max(1, static_cast<int>(std::ceil(share / slice))) : 1;
            for (int piece = 0; piece < pieces; ++piece) {
                pass(share / pieces);
                if (piece + 1 < pieces) ranks_.progress();
            }
            ready += job_.tensors[i];
            std::size_t const full = under_way.empty() ? std::min(job_.bucket_bytes, std::size_t{1} << 20) : job_.bucket_bytes;
            if (ready * sizeof(float) < full && i + 1 < job_.tensors.size()) continue;
            tensor_view const bucket{first, ready, dtype::f32};
            under_way.push_back(ranks_.allreduce("gradients", bucket, reduction::average));
            first += ready;
            ready = 0;
        }
        double const waiting = now();
        for (auto& each : under_way) each.wait();
        return now() - waiting;
    }

    simulated_world& world_;
    simulation_job const& job_;
    communicator& ranks_;
    std::size_t elements_ = 0;
};

/// Called by each rank's actor.
void run_rank(simulated_world& world, int rank) {
    MPI_Init(nullptr, nullptr);
    {
        auto const who = identity_of(world.job, rank);
        auto ranks = communicator::create(who, options_for(who));
        if (rank == 0) world.result.backend = ranks.backend();
        training(world, ranks).run();
        ranks.close();
    }
    MPI_Finalize();
}

// All of them.

constexpr int ring_rounds = 16;  // of each pass of a ring at most: of more, one stands for several

/// CM02 takes latencies and rates as they are; SMPI's own model multiplies them by factors of a Gigabit Ethernet.
constexpr char const* settings[]{
    "network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:no", "smpi/simulate-computation:no", "smpi/host-speed:1Gf",

    "smpi/test:0",        "smpi/iprobe:0",       "contexts/stack-size:512", "smpi/grow-injected-times:no"};

/// One processor: ranks that outnumber the processors of their host give theirs away while they wait, and time passes in that.
void use_one_processor() {
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &allowed)) continue;
        CPU_SET(cpu, &one);
        break;
    }
    sched_setaffinity(0, sizeof one, &one);
}

simulation_result simulate(simulation_job const& job, s4u::Engine& engine) {
    auto const hosts = build_platform(engine, job.platform, job.ranks);
    SMPI_init();
    let_payloads_go();
    set_memory_rate(job.platform.memory_gbs);
    set_ring_model(ring_rounds, job.platform.network_latency_us * 1e-6);
    simulated_world world{job, {}, {}};
    world.memory.resize(std::accumulate(job.tensors.begin(), job.tensors.end(), std::size_t{0}));
    SMPI_app_instance_register("muster", nullptr, job.ranks);
    for (int rank = 0; rank < job.ranks; ++rank) {
        auto actor = s4u::Actor::init("rank " + std::to_string(rank), hosts[static_cast<std::size_t>(rank)]);
        actor->set_property("instance_id", "muster");
        actor->set_property("rank", std::to_string(rank));
        actor->start([&world, rank] { run_rank(world, rank); });
    }
    engine.run();
    SMPI_finalize();
    return world.result;
}

}  // namespace

int main(int argc, char** argv) {
    return run_main("muster-simulate", [&] {
        init_log("warning");
        use_one_processor();
        std::string const text{std::istreambuf_iterator<char>(std::cin), {}};
        auto const job = read_job(parse_json(text, "standard input"));
        xbt_log_control_set("root.thresh:warning");
        s4u::Engine engine(&argc, argv);
        for (auto const* each : settings) s4u::Engine::set_config(each);
        std::cout << to_json(simulate(job, engine)).dump() << std::endl;
        return 0;
    });
}
