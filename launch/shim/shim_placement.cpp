#include "launch/shim/shim_placement.hpp"

#include "launch/hardware/discover_topology.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/gpu_sampler.hpp"
#include "launch/ranks/python_folders.hpp"
#include "launch/ranks/rank_variables.hpp"

namespace muster {

shim_placement place_rank(wire::job const& job, environment const& variables, int launcher_fd) {
    auto const& who = job.who;
    auto const machine = discover_topology(who.host, current_affinity(), variables);
    auto const bindings = bind_ranks(machine, job.place, who.local_size);
    shim_placement found;
    found.where = bindings.at(static_cast<std::size_t>(who.local_rank));
    // One shim a node tells of all its GPUs, where there is a folder to tell it in.
    if (who.local_rank == 0 && !job.output_dir.empty())
        found.sampled = gpus_to_sample(machine, bindings, is_gpu_share_unclear(machine, job.place));

    // MASTER_PORT and JAX's port lie on rank 0's node; each rank has one of its own for TensorFlow.
    int const own_ports = (who.rank == 0 ? 2 : 0) + (job.hold_worker_port ? 1 : 0);
    if (own_ports > 0) found.ports.emplace(own_ports);
    auto& ready = found.ready;
    if (found.where.device) {
        ready.gpu_index = found.where.device->index;
        ready.gpu_uuid = found.where.device->uuid;
    }
    ready.cpus = found.where.cores.empty() ? "" : found.where.cores.to_list();
    ready.nic = found.where.nic.value_or("");
    ready.why = found.where.why;
    if (who.local_rank == 0) ready.note = share_note(machine, job.place);
    ready.address =
        !job.own_address.empty() ? job.own_address : reachable_address(job.address, job.network_interface, launcher_fd);
    if (who.rank == 0) {
        ready.master_port = found.ports->numbers()[0];
        ready.jax_port = found.ports->numbers()[1];
    }
    if (job.hold_worker_port) ready.worker_port = found.ports->numbers().back();
    return found;
}

environment program_variables(wire::job const& job, wire::go const& go, binding const& where, environment const& shim_variables) {
    environment own = rank_environment(job.variables, shim_variables, job.own_step);
    auto const interface = job.network_interface.empty() ? interface_towards(go.address) : job.network_interface;
    if (!interface.empty()) own.set_default("GLOO_SOCKET_IFNAME", interface);
    for (auto const& [name, value] : interface_variables(job.network_interface))
        if (name != "OMPI_MCA_btl_tcp_if_include" || !own.has("OMPI_MCA_btl_tcp_if_exclude")) own.set_default(name, value);
    rendezvous const point{go.address, go.master_port, go.jax_port, go.workers};
    auto const python = keep_present({job.python_package, job.python_horovod}, job.who.host);
    complete_variables(own, {job.who, where, point, job.exports, job.command, python});
    return own;
}

}  // namespace muster
