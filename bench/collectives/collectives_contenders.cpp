#include "bench/collectives/collectives_contenders.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/trust/open_output_file.hpp"
#include "bench/peers/peer.hpp"

namespace muster {

namespace {

constexpr duration start_deadline{60};

using commands = std::vector<std::vector<std::string>>;

/// The peer's path, compiled by that compiler; "" with a message if that fails.
std::string compile(std::string const& compiler, std::string const& folder, environment const& variables) {
    std::string const path = find_program_or_nothing(compiler, variables);
    if (path.empty()) return {};
    std::string const source = folder + "/mpi_collectives.c", program = folder + "/" + compiler;
    write_output_file(source, find_text(peer_files(), "mpi_collectives.c"));
    auto how = foreground();
    how.out_fd = STDERR_FILENO;
    auto const made = run_program({path, "-O3", "-o", program, source}, variables, how);
    if (made.exit_status == 0) return program;
    fmt::print(stderr, "muster-bench: note: {} does not compile the peer (exit code {}), which is left out\n", compiler,
               made.exit_status);
    return {};
}

commands own_command(collectives_plan const& what, std::string const& name, std::string const& backend, std::string const& count,
                     std::string const& folder, memory_of_tensors memory) {
    int const nodes = backend == "hierarchical" ? what.nodes : 1;
    return {{what.muster, "run", "-q", "-n", count, "--slots-per-node", count, "--", what.self, "collectives-rank", folder, name,
             backend, std::to_string(nodes), std::string(to_string(memory))}};
}

/// True where the backend's allocate() gives memory that ranks share.
bool shares_memory(std::string const& backend) {
    return backend == "shm" || backend == "hierarchical";
}

commands gloo_commands(collectives_plan const& what, int ranks, std::string const& folder, environment const& variables) {
    std::string const script = folder + "/gloo_collectives.py";
    write_output_file(script, find_text(peer_files(), "gloo_collectives.py"));
    commands all;
    if (find_program_or_nothing(what.python, variables).empty()) return all;
    for (int rank = 0; rank < ranks; ++rank)
        all.push_back({what.python, script, folder, "gloo", std::to_string(rank), std::to_string(ranks)});
    return all;
}

/// Empty where the library is not here.
commands peer_commands(std::string const& peer, collectives_plan const& what, int ranks, std::string const& folder,
                       environment const& variables) {
    auto const count = std::to_string(ranks);
    if (peer == "raw-nccl") return own_command(what, peer, peer, count, folder, memory_of_tensors::device);
    if (peer == "gloo") return gloo_commands(what, ranks, folder, variables);
    bool const open = peer == "openmpi";
    auto const launcher = find_program_or_nothing(open ? "mpirun.openmpi" : "mpiexec.hydra", variables),
               program = compile(open ? "mpicc.openmpi" : "mpicc.mpich", folder, variables);
    if (launcher.empty() || program.empty()) return {};
    std::vector<std::string> command{launcher};
    if (open) command.emplace_back("--oversubscribe");
    if (open && ::getuid() == 0) command.emplace_back("--allow-run-as-root");
    command.insert(command.end(), {"-n", count, program, folder, peer});
    return {command};
}

}  // namespace

std::vector<contender> start_contenders(collectives_plan const& what, int ranks, std::string const& folder,
                                        environment const& variables) {
    std::vector<contender> all;
    auto const add = [&](std::string const& name, bool own, memory_of_tensors memory, commands const& start) {
        if (start.empty()) return;
        bool const simulated = name.starts_with("hierarchical") && what.nodes > 1;
        contender next{{name, "", own, memory, simulated}, nullptr};
        try {
            next.job = std::make_unique<collectives_job>(folder, name, ranks, start, variables);
            next.facts.version = next.job->version(start_deadline);
        } catch (error const& problem) {
            fmt::print(stderr, "muster-bench: note: a contender is left out: {}\n", problem.what());
            return;
        }
        all.push_back(std::move(next));
    };
    auto const count = std::to_string(ranks);
    auto const add_own = [&](std::string const& name, std::string const& backend, memory_of_tensors memory) {
        add(name, true, memory, own_command(what, name, backend, count, folder, memory));
    };
    for (auto const& backend : what.backends) {
        if (what.plain || !shares_memory(backend))
            add_own(backend, backend, backend == "nccl" ? memory_of_tensors::device : memory_of_tensors::plain);
        if (what.allocated && shares_memory(backend)) add_own(backend + "-allocated", backend, memory_of_tensors::allocated);
    }
    for (auto const& peer : what.peers)
        add(peer, false, peer == "raw-nccl" ? memory_of_tensors::device : memory_of_tensors::plain,
            peer_commands(peer, what, ranks, folder, variables));
    return all;
}

}  // namespace muster
