// The program `muster-simulate`: runs muster's collectives on a modelled platform by SimGrid; reads a job, prints its times.
#include <mpi.h>
#include <sched.h>

#include <xbt/log.h>
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

namespace {

using namespace muster;
namespace s4u = simgrid::s4u;

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
    simulated_world world{job, {}, std::vector<float>(std::accumulate(job.tensors.begin(), job.tensors.end(), std::size_t{0}))};
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
