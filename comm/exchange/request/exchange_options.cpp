#include "comm/exchange/request/exchange_options.hpp"

#include "base/process/network.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "pmix/wait_page.hpp"

namespace muster {

namespace {

bool read_switch(environment const& variables, std::string_view name) {
    auto const value = variables.get_int(name);
    if (value && *value != 0 && *value != 1) throw parse_error(name, *variables.get(name), 0, "not 0 or 1", errc::usage);
    return value.value_or(0) == 1;
}

/// Throws, so that programs that set them notice that they no longer have an effect.
void refuse_removed(environment const& variables, std::string_view name, std::string_view what) {
    if (read_switch(variables, name))
        throw_error(errc::unavailable,
                    "{}=1: the exchange has no {}, since it made no step faster; unset it, and use prepare() "
                    "(muster_allreduce_prepare in C) for tensors that are reduced again and again",
                    name, what);
}

}  // namespace

exchange_options read_exchange_options(environment const& variables) {
    exchange_options options;
    auto const read_time = [&](std::string_view name, duration& into) {
        if (auto const text = variables.get(name)) into = parse_duration(*text, name);
    };
    auto const read_size = [&](std::string_view name, std::size_t& into) {
        if (auto const text = variables.get(name)) into = static_cast<std::size_t>(parse_bytes(*text, name));
    };
    options.comm.backend = variables.get_or("MUSTER_COMM_BACKEND", "");
    if (auto const addresses = variables.get_or("MUSTER_ADDRESSES", ""); !addresses.empty())
        for (auto const each : split(addresses, ';')) options.comm.addresses.emplace_back(each);
    auto const interfaces = variables.get_or("GLOO_SOCKET_IFNAME", "");
    options.comm.network_interface = split(interfaces, ',').front();
    if (auto const ports = variables.get("MUSTER_PORTS"); ports && !ports->empty())
        use_ports(parse_port_range(*ports, "MUSTER_PORTS"));
    options.comm.wait_page = variables.get_or(wait_page_variable, "");
    options.comm.keep_mpi = read_switch(variables, "MUSTER_KEEP_MPI");
    if (auto const gpu = variables.get("MUSTER_GPU_INDEX"); gpu && !gpu->empty()) options.device_name = "GPU " + *gpu;
    read_size("MUSTER_FUSION_BYTES", options.fusion_bytes);
    read_time("MUSTER_CYCLE_TIME", options.cycle_time);
    read_time("MUSTER_COMM_DEADLINE", options.deadline);
    read_time("MUSTER_STALL_WARNING", options.stall_warning);
    read_size("MUSTER_CACHE_CAPACITY", options.cache_capacity);
    options.wire = parse_compression(variables.get_or("MUSTER_COMPRESSION", "none"), "MUSTER_COMPRESSION");
    options.error_feedback = read_switch(variables, "MUSTER_ERROR_FEEDBACK");
    refuse_removed(variables, "MUSTER_STATIC_GRAPH", "static graph");
    refuse_removed(variables, "MUSTER_AUTOTUNE", "autotuner");
    options.generation = static_cast<int>(parse_integer(variables.get_or("MUSTER_GENERATION", "")).value_or(0));
    options.timeline_folder = variables.get_or("MUSTER_TIMELINE", "");
    options.mark_cycles = read_switch(variables, "MUSTER_TIMELINE_MARK_CYCLES");
    options.flight_folder = variables.get_or("MUSTER_FLIGHT_RECORDER", "");
    return options;
}

}  // namespace muster
