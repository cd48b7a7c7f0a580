#include "launch/ranks/rank_variables.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/sha256.hpp"
#include "jobscripts/script_request.hpp"
#include "pmix/scrub.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

/// Returns whether PYTHONPATH can contain the folder: a colon separates folders there and cannot be quoted.
bool can_be_named(fs::path const& folder) {
    return folder.string().find(':') == std::string::npos;
}

bool holds_muster(fs::path const& folder) {
    return can_be_named(folder) && is_plain_file(folder / "muster" / "__init__.py") &&
           is_plain_file(folder / "_muster_native.abi3.so");
}

bool holds_horovod(fs::path const& folder) {
    return can_be_named(folder) && is_plain_file(folder / "horovod" / "__init__.py");
}

/// The build tree's folders count only while running from there: another user may own such a folder where muster is installed.
fs::path folder_of_python(fs::path const& program) {
    auto const prefix = program.parent_path().parent_path();
    if (prefix == fs::path(MUSTER_BUILD_DIR)) return prefix / "python";
    return prefix / MUSTER_PYTHON_UNDER_PREFIX;
}

bool is_in(std::string_view list, std::string_view folder) {
    auto const entries = split(list, ':');
    return std::ranges::find(entries, folder) != entries.end();
}

void append(environment& variables, std::string_view name, std::string const& folder) {
    auto const before = variables.get_or(name, "");
    variables.set(name, is_in(before, folder) ? join_folders({before}) : join_folders({before, folder}));
}

void prepend(environment& variables, std::string_view name, std::string const& folder) {
    auto const before = variables.get_or(name, "");
    bool const is_first = before == folder || before.starts_with(folder + ":");
    variables.set(name, is_first ? join_folders({before}) : join_folders({folder, before}));
}

}  // namespace

python_folders find_python_folders(fs::path const& program, bool as_horovod) {
    python_folders found;
    auto const package = folder_of_python(program);
    if (holds_muster(package)) found.package = package.string();
    if (!as_horovod) return found;
    auto const horovod = package.parent_path() / "as_horovod";
    if (!holds_horovod(horovod))
        throw_error(errc::not_found,
                    "--as-horovod needs the folder {}, and it is not there; build muster with the headers of Python 3.9 or later "
                    "(Debian: libpython3-dev)",
                    horovod.string());
    found.horovod = horovod.string();
    return found;
}

std::string wheel_folder(fs::path const& program) {
    auto const package = program.parent_path().parent_path().parent_path();  // site-packages/muster/_installed/bin/muster
    if (program.parent_path().parent_path().filename() != "_installed" || !holds_muster(package.parent_path())) return {};
    return package.parent_path().string();
}

python_folders keep_present(python_folders const& folders, std::string const& host) {
    python_folders present = folders;
    if (!present.package.empty() && !holds_muster(present.package)) present.package.clear();
    if (!present.horovod.empty() && !holds_horovod(present.horovod))
        throw_error(errc::not_found, "--as-horovod: {} is not there on {}; install muster at the same place on every node",
                    present.horovod, host);
    return present;
}

void add_python_folders(environment& variables, python_folders const& folders) {
    if (!folders.package.empty()) append(variables, "PYTHONPATH", folders.package);
    if (folders.horovod.empty()) return;
    prepend(variables, "PYTHONPATH", folders.horovod);
    prepend(variables, "PATH", folders.horovod + "/bin");
}

void apply_exports(environment& variables, std::vector<std::string> const& exports) {
    for (auto const& entry : exports) {
        auto const equals = entry.find('=');
        if (equals == 0 || entry.empty()) throw_error(errc::usage, "-x '{}' has no name; write -x NAME=value", entry);
        if (equals != std::string::npos)
            variables.set(entry.substr(0, equals), entry.substr(equals + 1));
        else if (!variables.has(entry))
            throw_error(errc::usage, "-x {}: there is no such variable here; set it, or write -x {}=value", entry, entry);
    }
}

bool is_threads_of_pbs(environment const& variables) {
    auto const threads = variables.get("OMP_NUM_THREADS");
    return threads && variables.has("PBS_JOBID") && threads == variables.get("NCPUS");
}

environment variables_for_ranks(environment const& inherited, std::vector<std::string> const& exports) {
    environment variables = inherited;
    pmix::scrub_inherited(variables);
    bool const wanted = std::ranges::find(exports, "OMP_NUM_THREADS") != exports.end();
    if (!wanted && is_threads_of_pbs(variables)) variables.unset("OMP_NUM_THREADS");
    apply_exports(variables, exports);
    return variables;
}

void leave_out(environment& variables, std::vector<std::string> const& patterns, std::vector<std::string> const& exports) {
    std::vector<std::string> gone;
    for (auto const& [name, value] : variables) {
        bool const matched =
            std::ranges::any_of(patterns, [&](auto const& p) { return ::fnmatch(p.c_str(), name.c_str(), 0) == 0; });
        bool const wanted =
            std::ranges::any_of(exports, [&](auto const& entry) { return entry.substr(0, entry.find('=')) == name; });
        if (matched && !wanted) gone.push_back(name);
    }
    for (auto const& name : gone) variables.unset(name);
}

void set_explicit(environment& variables, std::vector<std::string> const& exports) {
    for (auto const& entry : exports)
        if (auto const equals = entry.find('='); equals != std::string::npos)
            variables.set(entry.substr(0, equals), entry.substr(equals + 1));
}

namespace {

void set_number(environment& v, std::string_view name, int value) {
    v.set(name, std::to_string(value));
}

/// Returns a name of the job that programs may print or send: a hash of the whole replaces its last part, which is secret.
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
    // Gloo finds its interface by the host's name, which may not resolve; on one node the loopback always does.
    if (who.node_count == 1) v.set_default("GLOO_SOCKET_IFNAME", "lo");
}

/// Sets where torch's @record writes the exception that ends the program, as JSON; programs that write their own file expect the
/// variable.
void set_error_file(environment& v, identity const& who, std::string const& folder) {
    if (folder.empty()) return v.unset("TORCHELASTIC_ERROR_FILE");
    v.set("TORCHELASTIC_ERROR_FILE",
          fmt::format("{}/torch-error-{}-{}.json", folder, v.get_or("MUSTER_GENERATION", "0"), who.rank));
}

void set_horovod(environment& v) {
    // Horovod's Gloo controller needs a rendezvous server; with MPI it only needs MPI to come up.
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
    if (point.workers.empty()) return v.unset("TF_CONFIG");  // there are too many ranks to list in each rank's environment
    std::string workers;
    for (auto const& worker : point.workers) workers += fmt::format("{}\"{}\"", workers.empty() ? "" : ",", worker);
    v.set("TF_CONFIG",
          fmt::format(R"({{"cluster":{{"worker":[{}]}},"task":{{"type":"worker","index":{}}}}})", workers, who.rank));
}

/// Returns "APPTAINER_BIND", "SINGULARITY_BIND", or an empty text without a container.
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
    return is_to_be_bound(folder) && is_folder(folder);
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
    // Python buffers output to a pipe: lines would come late, or never when a rank is killed.
    v.set_default("PYTHONUNBUFFERED", "1");
}

std::vector<std::pair<std::string, std::string>> interface_variables(std::string const& interface, std::string const& sysfs) {
    if (interface.empty()) return {};
    // UCX names a port "mlx5_0:1", but TCP by the interface.
    std::vector<std::string> ports;
    for (auto const& card : folder_entries(fmt::format("{}/{}/device/infiniband", sysfs, interface))) {
        auto const port = parse_integer(trim(read_text_file(fmt::format("{}/{}/dev_port", sysfs, interface)))).value_or(0);
        ports.push_back(fmt::format("{}:{}", card.filename().string(), port + 1));
    }
    std::ranges::sort(ports);
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
    if (!is_folder_to_bind(folder) || has_it(given) || std::ranges::any_of(command, has_it)) return;
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
            // HIP would count these within ROCR_VISIBLE_DEVICES, and reads CUDA's, too.
            for (auto const* name : {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}) v.unset(name);
            break;
        case gpu_vendor::intel:
            if (!visible.empty()) v.set("ZE_AFFINITY_MASK", visible);
            break;
    }
}

void complete_variables(environment& variables, rank_setting const& rank) {
    set_rank_variables(variables, rank.who, rank.place, rank.point);
    set_error_file(variables, rank.who, rank.error_folder);
    set_explicit(variables, rank.exports);
    add_python_folders(variables, rank.python);
    set_container_variables(variables, rank.command);
}

}  // namespace muster
