#include "bench/predict/simulator/simulator.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <simgrid/s4u.hpp>

#include "comm/communicator.hpp"

namespace muster {

namespace {

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

}  // namespace

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

}  // namespace muster
