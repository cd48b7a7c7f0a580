#include "launch/wire/messages.hpp"

#include <fmt/format.h>

#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.hpp"
#include "base/field_count.hpp"

namespace muster::wire {

namespace {

using json = nlohmann::json;

template <typename T, typename M>
concept is = std::same_as<std::remove_const_t<T>, M>;

/// Accepts structs, which are nested arrays.
template <typename T>
concept has_fields = std::is_aggregate_v<T>;

// A message is an array: its number, then its fields in order. One function for each type lists the fields, for both directions.
class writer {
  public:
    template <typename T>
    void operator()(T const& field) {
        fields_.push_back(convert(field));
    }
    json take() { return std::move(fields_); }

  private:
    template <has_fields T>
    static json convert(T const& value) {
        writer own;
        fields(own, value);
        return own.take();
    }
    template <has_fields T>
    static json convert(std::vector<T> const& items) {
        json all = json::array();
        for (auto const& item : items) all.push_back(convert(item));
        return all;
    }
    static json convert(duration d) { return d.count(); }
    template <typename E>
    requires std::is_enum_v<E>
    static json convert(E e) { return static_cast<int>(e); }
    template <typename T>
    static json convert(std::optional<T> const& value) {
        return value ? json(*value) : json(nullptr);
    }
    static json convert(environment const& variables) {
        json list = json::array();
        for (auto const& [name, value] : variables) list.push_back({name, value});
        return list;
    }
    template <typename T>
    requires(!std::is_enum_v<T> && !has_fields<T>) static json convert(T const& value) { return value; }
    json fields_ = json::array();
};

class reader {
  public:
    explicit reader(json const& fields) : fields_(fields) {}
    template <typename T>
    void operator()(T& field) {
        convert(fields_.at(next_++), field);
    }

  private:
    template <has_fields T>
    static void convert(json const& from, T& to) {
        reader own(from);
        fields(own, to);
    }
    template <has_fields T>
    static void convert(json const& from, std::vector<T>& to) {
        for (auto const& item : from) convert(item, to.emplace_back());
    }
    static void convert(json const& from, duration& to) { to = duration(from.get<double>()); }
    template <typename E>
    requires std::is_enum_v<E>
    static void convert(json const& from, E& to) { to = static_cast<E>(from.get<int>()); }
    template <typename T>
    static void convert(json const& from, std::optional<T>& to) {
        if (from.is_null())
            to.reset();
        else
            to = from.get<T>();
    }
    static void convert(json const& from, environment& to) {
        to = {};
        for (auto const& entry : from) to.set(entry.at(0).get<std::string>(), entry.at(1).get<std::string>());
    }
    template <typename T>
    requires(!std::is_enum_v<T> && !has_fields<T>) static void convert(json const& from, T& to) { to = from.get<T>(); }
    json const& fields_;
    std::size_t next_ = 0;
};

template <typename V, typename Of, typename... Field>
void all(V& visit, Of&, Field&... field) {
    static_assert(sizeof...(Field) == field_count<std::remove_const_t<Of>>,
                  "list every member of the struct: the wire carries no other");
    (visit(field), ...);
}

void fields(auto& v, is<soft_limit> auto& m) {
    all(v, m, m.resource, m.value);
}
void fields(auto& v, is<hello> auto& m) {
    all(v, m, m.version, m.host, m.rank, m.world_size, m.pid, m.step, m.fault, m.agent, m.again);
}
void fields(auto& v, is<identity> auto& m) {
    all(v, m, m.nspace, m.rank, m.world_size, m.local_rank, m.local_size, m.node_rank, m.node_count, m.host, m.from);
}
void fields(auto& v, is<node_part> auto& m) {
    all(v, m, m.may_be_part, m.gpus, m.cpus, m.gpu_ids);
}
void fields(auto& v, is<placement_request> auto& m) {
    all(v, m, m.ranks, m.nodes, m.ranks_per_node, m.map_by, m.slots_per_node, m.ranks_per_gpu, m.bind_to, m.cpus_per_rank,
        m.gpus_seen, m.smt, m.cpu_map, m.gpu_map, m.gpu_cpus, m.reserved_cpus, m.share, m.lists_gpus);
}
void fields(auto& v, is<job> auto& m) {
    all(v, m, m.who, m.place, m.command, m.working_dir, m.variables, m.exports, m.output_dir, m.output_window, m.own_step,
        m.python_package, m.python_horovod, m.network_interface, m.address, m.own_address, m.grace, m.lost_after,
        m.hold_worker_port, m.limits, m.file_mask, m.keeps_state, m.kept_file, m.kept_parts, m.in_place);
}
void fields(auto& v, is<ready> auto& m) {
    all(v, m, m.gpu_index, m.gpu_uuid, m.cpus, m.nic, m.why, m.note, m.address, m.master_port, m.jax_port, m.worker_port);
}
void fields(auto& v, is<go> auto& m) {
    all(v, m, m.address, m.master_port, m.jax_port, m.workers);
}
void fields(auto& v, is<started> auto& m) {
    all(v, m, m.pid);
}
void fields(auto& v, is<failed> auto& m) {
    all(v, m, m.what, m.exit_code);
}
void fields(auto& v, is<ended> auto& m) {
    all(v, m, m.wait_status, m.last_lines, m.asked, m.memory);
}
void fields(auto& v, is<gone> auto& m) {
    all(v, m);
}
void fields(auto& v, is<room> auto& m) {
    all(v, m, m.bytes);
}
void fields(auto& v, is<orphaned> auto& m) {
    all(v, m, m.parent);
}
void fields(auto& v, is<used_mpi> auto& m) {
    all(v, m, m.library);
}
void fields(auto& v, is<signal> auto& m) {
    all(v, m, m.number, m.stop, m.if_caught);
}
void fields(auto& v, is<bye> auto& m) {
    all(v, m, m.exit_code);
}

void fields(auto& v, is<asked_to_end> auto& m) {
    all(v, m, m.number);
}
void fields(auto& v, is<aborting> auto& m) {
    all(v, m, m.rank, m.code);
}
void fields(auto& v, is<ping> auto& m) {
    all(v, m, m.number);
}
void fields(auto& v, is<pong> auto& m) {
    all(v, m, m.number, m.agent_missed);
}
void fields(auto& v, is<inspect> auto& m) {
    all(v, m, m.number, m.command);
}
void fields(auto& v, is<process_sight> auto& m) {
    all(v, m, m.pid, m.state, m.where, m.cpu_s, m.at_port, m.silent_s, m.last_line, m.traceback, m.said, m.leaving, m.caught);
}
void fields(auto& v, is<seen> auto& m) {
    all(v, m, m.number, m.sight);
}

void fields(auto& v, is<gpu_use> auto& m) {
    all(v, m, m.number, m.name, m.busy_percent, m.memory_bytes, m.used_bytes, m.watts);
}
void fields(auto& v, is<gpus_used> auto& m) {
    all(v, m, m.gpus);
}
void fields(auto& v, is<start_shims> auto& m) {
    all(v, m, m.shim, m.variables, m.world_size, m.hosts, m.ranks, m.nspace, m.network_interface, m.serve_mpi, m.lost_after,
        m.spares);
}
void fields(auto& v, is<exchange> auto& m) {
    all(v, m, m.name, m.nodes, m.data);
}
void fields(auto& v, is<meet_launcher> auto& m) {
    all(v, m, m.number, m.variables, m.lost_after);
}
void fields(auto& v, is<modex> auto& m) {
    all(v, m, m.node, m.number, m.rank, m.status, m.data);
}
void fields(auto& v, is<input> auto& m) {
    all(v, m, m.bytes);
}
void fields(auto& v, is<taken> auto& m) {
    all(v, m);
}
void fields(auto& v, is<shims_ended> auto& m) {
    all(v, m);
}
void fields(auto& v, is<met> auto& m) {
    all(v, m, m.left);
}
void fields(auto& v, is<settled> auto& m) {
    all(v, m);
}
void fields(auto& v, is<member_packet> auto& m) {
    all(v, m, m.bytes);
}
void fields(auto& v, is<kept_copy> auto& m) {
    all(v, m, m.part, m.of_neighbour, m.step, m.generation, m.rank, m.world_size);
}
void fields(auto& v, is<keep_order> auto& m) {
    all(v, m, m.what, m.round, m.step, m.generation, m.address, m.port, m.key, m.part, m.of_neighbour, m.parts, m.file_id);
}
void fields(auto& v, is<keep_word> auto& m) {
    all(v, m, m.what, m.round, m.step, m.file, m.address, m.port, m.key, m.fault, m.copies, m.file_id);
}
void fields(auto& v, is<place_states> auto& m) {
    all(v, m, m.hosts, m.ranks, m.world_size, m.session_dir);
}
void fields(auto& v, is<states_placed> auto& m) {
    all(v, m, m.files, m.parts, m.free_part, m.step, m.world_size, m.notes, m.under_way);
}

void fields(auto& v, is<node_question> auto& m) {
    all(v, m, m.program, m.working_dir, m.variables, m.own_step, m.names, m.address, m.network_interface, m.limit);
}
void fields(auto& v, is<examine> auto& m) {
    all(v, m, m.what);
}
void fields(auto& v, is<gpu_state> auto& m) {
    all(v, m, m.index, m.uuid, m.pci, m.name, m.memory_bytes, m.used_bytes, m.ecc_errors, m.needs_reset, m.slowed, m.clock_mhz,
        m.most_clock_mhz, m.processes);
}
void fields(auto& v, is<folder_state> auto& m) {
    all(v, m, m.path, m.free_bytes, m.fault);
}
void fields(auto& v, is<name_fault> auto& m) {
    all(v, m, m.name, m.fault);
}
void fields(auto& v, is<node_report> auto& m) {
    all(v, m, m.version, m.host, m.address, m.interface, m.address_fault, m.port, m.cores, m.cpus, m.cpu_list, m.gpus, m.gpu_note,
        m.machine_fault, m.folders, m.program, m.program_fault, m.working_dir_fault, m.unresolved, m.unfinished, m.asked_at,
        m.answered_at);
}
void fields(auto& v, is<report> auto& m) {
    all(v, m, m.node);
}
void fields(auto& v, is<reach> auto& m) {
    all(v, m, m.address, m.port);
}
void fields(auto& v, is<reached> auto& m) {
    all(v, m, m.fault);
}

template <std::size_t I = 0>
message read_as(std::size_t which, json const& values) {
    if constexpr (I == std::variant_size_v<message>) {
        throw error(errc::invalid_data, fmt::format("a message of unknown kind {}", which));
    } else {
        if (which != I) return read_as<I + 1>(which, values);
        std::variant_alternative_t<I, message> m;
        reader r(values);
        fields(r, m);
        return m;
    }
}

}  // namespace

std::string encode(message const& m) {
    writer w;
    std::visit([&](auto const& content) { fields(w, content); }, m);
    std::string bytes;
    json::to_cbor(json{m.index(), w.take()}, bytes);
    return bytes;
}

message decode(std::string_view bytes) {
    try {
        auto const parsed = json::from_cbor(bytes.begin(), bytes.end());
        return read_as(parsed.at(0).get<std::size_t>(), parsed.at(1));
    } catch (json::exception const& e) {
        throw error(errc::invalid_data, fmt::format("not a message of muster ({} bytes): {}", bytes.size(), e.id));
    }
}

}  // namespace muster::wire
