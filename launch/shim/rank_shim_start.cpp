// The shim's second half: placing the rank on this node, starting its program and passing on its output.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "launch/hardware/discover_topology.hpp"
#include "launch/observe/abort_notice.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/node_share.hpp"
#include "launch/ranks/python_folders.hpp"
#include "launch/ranks/rank_environment.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/shim/rank_shim.hpp"
#include "launch/system/network.hpp"

namespace muster {

void rank_shim::place() {
    auto const& who = job_.who;
    variables_ = with_given_gpus(std::move(variables_), job_.place.share);
    machine_ = discover_topology(who.host, current_affinity(), variables_);
    auto const local = static_cast<std::size_t>(who.local_rank);
    auto const bindings = bind_ranks(machine_, job_.place, who.local_size);
    binding_ = bindings.at(local);
    // One shim a node tells of all its GPUs, where there is a folder to tell it in.
    if (who.local_rank == 0 && !job_.output_dir.empty())
        sampled_ = gpus_to_sample(machine_, bindings, is_gpu_share_unclear(machine_, job_.place));

    // MASTER_PORT and JAX's port lie on rank 0's node; each rank has one of its own for TensorFlow.
    int const own_ports = (who.rank == 0 ? 2 : 0) + (job_.hold_worker_port ? 1 : 0);
    if (own_ports > 0) ports_.emplace(own_ports);
    wire::ready ready;
    if (binding_.device) {
        ready.gpu_index = binding_.device->index;
        ready.gpu_uuid = binding_.device->uuid;
    }
    ready.cpus = binding_.cores.empty() ? "" : binding_.cores.to_list();
    ready.nic = binding_.nic.value_or("");
    ready.why = binding_.why;
    if (who.local_rank == 0) ready.note = share_note(machine_, job_.place);
    ready.address =
        !job_.own_address.empty() ? job_.own_address : reachable_address(job_.address, job_.network_interface, launcher_fd_);
    if (who.rank == 0) {
        ready.master_port = ports_->numbers()[0];
        ready.jax_port = ports_->numbers()[1];
    }
    if (job_.hold_worker_port) ready.worker_port = ports_->numbers().back();
    tell(ready);
}

environment rank_shim::program_variables(wire::go const& go) const {
    environment own = rank_environment(job_.variables, variables_, job_.own_step);
    auto const interface = job_.network_interface.empty() ? interface_towards(go.address) : job_.network_interface;
    if (!interface.empty()) own.set_default("GLOO_SOCKET_IFNAME", interface);
    if (!job_.network_interface.empty()) own.set_default("NCCL_SOCKET_IFNAME", job_.network_interface);
    rendezvous const point{go.address, go.master_port, go.jax_port, go.workers};
    auto const python = keep_present({job_.python_package, job_.python_horovod}, job_.who.host);
    complete_variables(own, {job_.who, binding_, point, job_.exports, job_.command, python});
    return own;
}

/// Output goes to the launcher by our own connection. Engines mix the lines of ranks, each in pieces of its own size, and lose what
/// they cannot write.
void rank_shim::open_streams() {
    line_format const as_it_is{.tag = "", .raw = true};  // the launcher makes lines of it
    auto files = make_output_files(job_.output_dir, job_.who);
    sender_.emplace([this](std::string_view frame) { way()->send(frame); }, job_.output_window);
    output_.emplace(loop_, *sender_);
    err_.emplace(STDERR_FILENO, as_it_is, std::move(files.err));
    out_.emplace(STDOUT_FILENO, as_it_is, std::move(files.out));
}

void rank_shim::start(wire::go const& go) {
    auto const own = program_variables(go);
    auto const program = find_program(job_.command.front(), own, job_.working_dir);
    open_streams();
    master_port_ = static_cast<int>(parse_integer(own.get_or("MASTER_PORT", "")).value_or(0));
    memory_ = count_memory_kills();
    ports_.reset();
    // Hydra does not tell ranks on other nodes that standard input has ended.
    int const input = job_.who.rank == 0 ? STDIN_FILENO : -1;
    pid_ = start_process({.path = program,
                          .arguments = &job_.command,
                          .variables = &own,
                          .working_dir = job_.working_dir,
                          .stdin_fd = input,
                          .stdout_fd = out_->child_fd(),
                          .stderr_fd = err_->child_fd(),
                          .cores = binding_.cores,
                          .own_group = false,
                          .limits = job_.limits,
                          .file_mask = job_.file_mask});
    for (auto* stream : {&out_, &err_}) {
        (*stream)->close_child_end();
        output_->add(**stream, [this, &one = **stream] { note_output(one); });
    }
}

/// Called before each read. Of an abort the launcher must know at once, since the scheduler may kill this process next.
void rank_shim::note_output(rank_stream& stream) {
    last_written_ = &stream;
    last_output_ = event_loop::clock::now();
    // A rank that prints the size of its world has initialised MPI by now, and one in a container may be over before the next look.
    bool const again = has_mpi_ && !mpi_told_ && last_output_ - looked_at_ > mpi_look_again_after;
    if (!std::exchange(spoke_, true) || again) loop_.after(duration(0), [this] { detect_mpi(); });
    if (&stream == &*err_ && !abort_told_) loop_.after(duration(0), [this] { report_abort(); });
}

void rank_shim::report_abort() {
    if (abort_told_ || !err_) return;
    auto const notice = find_abort_notice(err_->last_lines());
    if (!notice) return;
    abort_told_ = true;
    tell(wire::aborting{notice->rank, notice->code});
}

}  // namespace muster
