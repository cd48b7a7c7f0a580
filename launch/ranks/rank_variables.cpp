#include "launch/ranks/rank_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/trust/sha256.hpp"
#include "jobscripts/script_request.hpp"
#include "launch/ranks/exports.hpp"

namespace muster {

namespace {

void set_number(environment& v, std::string_view name, int value) {
    v.set(name, std::to_string(value));
}

/// The job's name for what programs print or send: its last part is secret, so a hash of the whole stands there.
std::string public_name(std::string const& nspace) {
    return nspace.substr(0, nspace.rfind('.') + 1) + sha256_digits(nspace, 8);
}

void set_torch(environment& v, identity const& who, rendezvous const& point) {
    v.set("ROLE_NAME", "default");
    v.set("MASTER_ADDR", point.address);
    set_number(v, "MASTER_PORT", point.master_port);
    v.set("TORCHELASTIC_RUN_ID", public_name(who.nspace));
    v.set("TORCHELASTIC_RESTART_COUNT", v.get_or("MUSTER_GENERATION", "0"));
    v.set("TORCHELASTIC_MAX_RESTARTS", v.get_or("MUSTER_LAST_GENERATION", "0"));
    v.set_default("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    // Gloo looks its interface up by the host's own name, which need not resolve; on one node the loopback always does.
    if (who.node_count == 1) v.set_default("GLOO_SOCKET_IFNAME", "lo");
}

void set_horovod(environment& v) {
    // Its Gloo controller needs a rendezvous server; with MPI it only needs MPI to come up.
    v.set_default("HOROVOD_CONTROLLER", "mpi");
    v.set_default("HOROVOD_CPU_OPERATIONS", "mpi");
}

void set_jax(environment& v, identity const& who, rendezvous const& point) {
    v.set("JAX_COORDINATOR_ADDRESS", fmt::format("{}:{}", point.address, point.jax_port));
    set_number(v, "JAX_COORDINATOR_PORT", point.jax_port);
    set_number(v, "JAX_NUM_PROCESSES", who.world_size);
    set_number(v, "JAX_PROCESS_ID", who.rank);
}

void set_tensorflow(environment& v, identity const& who, rendezvous const& point) {
    if (point.workers.empty()) return v.unset("TF_CONFIG");  // too many ranks to list in each rank's environment
    std::string workers;
    for (auto const& worker : point.workers) workers += fmt::format("{}\"{}\"", workers.empty() ? "" : ",", worker);
    v.set("TF_CONFIG",
          fmt::format(R"({{"cluster":{{"worker":[{}]}},"task":{{"type":"worker","index":{}}}}})", workers, who.rank));
}

/// "APPTAINER_BIND", "SINGULARITY_BIND", or empty: no container.
std::string_view bind_variable(std::vector<std::string> const& command) {
    for (std::size_t i = 0; i + 1 < command.size(); ++i) {
        auto const name = std::string_view(command[i]).substr(command[i].rfind('/') + 1);
        if (command[i + 1] != "exec" && command[i + 1] != "run") continue;
        if (name == "apptainer") return "APPTAINER_BIND";
        if (name == "singularity") return "SINGULARITY_BIND";
    }
    return {};
}

bool is_folder_to_bind(std::string const& folder) {
    std::error_code fault;
    return is_to_be_bound(folder) && std::filesystem::is_directory(folder, fault);
}

}  // namespace

void set_rank_variables(environment& v, identity const& who, binding const& place, rendezvous const& point) {
    set_place(v, who);
    set_torch(v, who, point);
    set_horovod(v);
    set_jax(v, who, point);
    set_tensorflow(v, who, point);
    set_gpu_variables(v, place);
    if (!place.cores.empty()) {
        v.set("MUSTER_CPUS", place.cores.to_list());
        v.set_default("OMP_NUM_THREADS", std::to_string(place.cores.cpus.size()));
    } else {
        v.set_default("OMP_NUM_THREADS", std::to_string(place.threads));
    }
    // Python buffers what it prints into a pipe; then lines would come late, or never when a rank is killed.
    v.set_default("PYTHONUNBUFFERED", "1");
}

std::vector<std::pair<std::string, std::string>> interface_variables(std::string const& interface, std::string const& sysfs) {
    if (interface.empty()) return {};
    // UCX names a port "mlx5_0:1", and TCP by the interface.
    std::vector<std::string> ports;
    std::error_code fault;
    for (auto const& card :
         std::filesystem::directory_iterator(fmt::format("{}/{}/device/infiniband", sysfs, interface), fault)) {
        auto const port = parse_integer(trim(read_text_file(fmt::format("{}/{}/dev_port", sysfs, interface)))).value_or(0);
        ports.push_back(fmt::format("{}:{}", card.path().filename().string(), port + 1));
    }
    std::sort(ports.begin(), ports.end());
    ports.push_back(interface);
    return {{"NCCL_SOCKET_IFNAME", interface},
            {"OMPI_MCA_btl_tcp_if_include", interface},
            {"MPIR_CVAR_NEMESIS_TCP_NETWORK_IFACE", interface},
            {"FI_TCP_IFACE", interface},
            {"FI_SOCKETS_IFACE", interface},
            {"UCX_NET_DEVICES", join(ports, ",")}};
}

void set_container_variables(environment& variables, std::vector<std::string> const& command) {
    auto const bind = bind_variable(command);
    if (bind.empty()) return;
    variables.set_default("UCX_POSIX_USE_PROC_LINK", "n");
    auto folder = variables.get_or("PMIX_SERVER_TMPDIR", "");
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    auto const given = variables.get_or(std::string(bind), "");
    auto const has_it = [&](std::string const& word) { return word.find(folder) != std::string::npos; };
    if (!is_folder_to_bind(folder) || has_it(given) || std::any_of(command.begin(), command.end(), has_it)) return;
    variables.set(std::string(bind), given.empty() ? folder : fmt::format("{},{}", given, folder));
}

void set_gpu_variables(environment& v, binding const& place) {
    if (!place.device) return;
    auto const index = std::to_string(place.device_index);
    v.set("MUSTER_GPU_INDEX", index);
    v.set("JAX_LOCAL_DEVICE_IDS", index);
    v.unset("MUSTER_GPU_UUID");
    if (!place.device->uuid.empty()) v.set("MUSTER_GPU_UUID", place.device->uuid);
    auto const& visible = place.visible_devices;
    switch (place.device->vendor) {
        case gpu_vendor::nvidia:
            if (place.device->known_to_driver) v.set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
            if (!visible.empty()) v.set("CUDA_VISIBLE_DEVICES", visible);
            break;
        case gpu_vendor::amd:
            if (visible.empty()) break;
            v.set("ROCR_VISIBLE_DEVICES", visible);
            // HIP would count these within ROCR_VISIBLE_DEVICES, and takes CUDA's for its own.
            for (auto const* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) v.unset(name);
            break;
        case gpu_vendor::intel:
            if (!visible.empty()) v.set("ZE_AFFINITY_MASK", visible);
            break;
    }
}

void complete_variables(environment& variables, rank_setting const& rank) {
    set_rank_variables(variables, rank.who, rank.place, rank.point);
    set_explicit(variables, rank.exports);
    add_python_folders(variables, rank.python);
    set_container_variables(variables, rank.command);
}

}  // namespace muster
