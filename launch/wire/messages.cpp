#include "launch/wire/messages.hpp"

#include <fmt/format.h>

#include <concepts>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/error.hpp"

namespace muster::wire {

namespace {

using json = nlohmann::json;

template <typename T, typename M>
concept is = std::same_as<std::remove_const_t<T>, M>;

void fields(auto& v, is<gpu_state> auto& m);
void fields(auto& v, is<gpu_use> auto& m);
void fields(auto& v, is<folder_state> auto& m);
void fields(auto& v, is<name_fault> auto& m);
void fields(auto& v, is<kept_copy> auto& m);

// A message is an array: its number, then its fields in order. One function a type lists the fields, for both directions.
class writer {
  public:
    template <typename T>
    void operator()(T const& field) {
        fields_.push_back(convert(field));
    }
    /// A list of structs that have fields of their own.
    template <typename T>
    void list(std::vector<T> const& items) {
        json all = json::array();
        for (auto const& item : items) {
            writer own;
            fields(own, item);
            all.push_back(own.take());
        }
        fields_.push_back(std::move(all));
    }
    json take() { return std::move(fields_); }

  private:
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
    requires(!std::is_enum_v<T>) static json convert(T const& value) { return value; }
    json fields_ = json::array();
};

class reader {
  public:
    explicit reader(json const& fields) : fields_(fields) {}
    template <typename T>
    void operator()(T& field) {
        convert(fields_.at(next_++), field);
    }
    template <typename T>
    void list(std::vector<T>& items) {
        for (auto const& item : fields_.at(next_++)) {
            reader own(item);
            fields(own, items.emplace_back());
        }
    }

  private:
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
    requires(!std::is_enum_v<T>) static void convert(json const& from, T& to) { to = from.get<T>(); }
    json const& fields_;
    std::size_t next_ = 0;
};

template <typename V, typename... Field>
void all(V& visit, Field&... field) {
    (visit(field), ...);
}

void fields(auto& v, is<soft_limit> auto& m) {
    all(v, m.resource, m.value);
}
void fields(auto& v, is<hello> auto& m) {
    all(v, m.version, m.host, m.rank, m.world_size, m.pid, m.step, m.fault, m.agent, m.again);
}
void fields(auto& v, is<job> auto& m) {
    auto& w = m.who;
    all(v, w.nspace, w.rank, w.world_size, w.local_rank, w.local_size, w.node_rank, w.node_count, w.host, w.from);
    auto& p = m.place;
    all(v, p.ranks, p.nodes, p.ranks_per_node, p.map_by, p.slots_per_node, p.ranks_per_gpu, p.bind_to, p.cpus_per_rank,
        p.gpus_seen, p.smt, p.cpu_map, p.gpu_map, p.gpu_cpus, p.reserved_cpus, p.share.may_be_part, p.share.gpus, p.share.cpus,
        p.share.gpu_ids);
    all(v, m.command, m.working_dir, m.variables, m.exports, m.output_dir, m.output_window, m.own_step, m.python_package,
        m.python_horovod, m.network_interface, m.address, m.own_address, m.grace, m.lost_after, m.hold_worker_port, m.file_mask,
        m.keeps_state, m.kept_file, m.kept_parts, m.in_place);
    v.list(m.limits);
}
void fields(auto& v, is<ready> auto& m) {
    all(v, m.gpu_index, m.gpu_uuid, m.cpus, m.nic, m.why, m.note, m.address, m.master_port, m.jax_port, m.worker_port);
}
void fields(auto& v, is<go> auto& m) {
    all(v, m.address, m.master_port, m.jax_port, m.workers);
}
void fields(auto& v, is<started> auto& m) {
    all(v, m.pid);
}
void fields(auto& v, is<failed> auto& m) {
    all(v, m.what, m.exit_code);
}
void fields(auto& v, is<ended> auto& m) {
    all(v, m.wait_status, m.last_lines, m.asked, m.memory);
}
void fields(auto&, is<gone> auto&) {}
void fields(auto& v, is<room> auto& m) {
    all(v, m.bytes);
}
void fields(auto& v, is<orphaned> auto& m) {
    all(v, m.parent);
}
void fields(auto& v, is<used_mpi> auto& m) {
    all(v, m.library);
}
void fields(auto& v, is<signal> auto& m) {
    all(v, m.number, m.stop, m.if_caught);
}
void fields(auto& v, is<bye> auto& m) {
    all(v, m.exit_code);
}

void fields(auto& v, is<asked_to_end> auto& m) {
    all(v, m.number);
}
void fields(auto& v, is<aborting> auto& m) {
    all(v, m.rank, m.code);
}
void fields(auto& v, is<ping> auto& m) {
    all(v, m.number);
}
void fields(auto& v, is<pong> auto& m) {
    all(v, m.number, m.agent_missed);
}
void fields(auto& v, is<inspect> auto& m) {
    all(v, m.number, m.command);
}
void fields(auto& v, is<seen> auto& m) {
    auto& s = m.sight;
    all(v, m.number, s.pid, s.state, s.where, s.cpu_s, s.at_port, s.silent_s, s.last_line, s.traceback, s.said, s.leaving,
        s.caught);
}

void fields(auto& v, is<gpu_use> auto& m) {
    all(v, m.number, m.name, m.busy_percent, m.memory_bytes, m.used_bytes, m.watts);
}
void fields(auto& v, is<gpus_used> auto& m) {
    v.list(m.gpus);
}
void fields(auto& v, is<start_shims> auto& m) {
    all(v, m.shim, m.variables, m.world_size, m.hosts, m.ranks, m.nspace, m.network_interface, m.serve_mpi, m.lost_after,
        m.spares);
}
void fields(auto& v, is<exchange> auto& m) {
    all(v, m.name, m.nodes, m.data);
}
void fields(auto& v, is<meet_launcher> auto& m) {
    all(v, m.number, m.variables, m.lost_after);
}
void fields(auto& v, is<modex> auto& m) {
    all(v, m.node, m.number, m.rank, m.status, m.data);
}
void fields(auto& v, is<input> auto& m) {
    all(v, m.bytes);
}
void fields(auto&, is<taken> auto&) {}
void fields(auto&, is<shims_ended> auto&) {}
void fields(auto& v, is<met> auto& m) {
    all(v, m.left);
}
void fields(auto&, is<settled> auto&) {}
void fields(auto& v, is<member_packet> auto& m) {
    all(v, m.bytes);
}
void fields(auto& v, is<kept_copy> auto& m) {
    all(v, m.part, m.of_neighbour, m.step, m.generation, m.rank, m.world_size);
}
void fields(auto& v, is<keep_order> auto& m) {
    all(v, m.what, m.round, m.step, m.generation, m.address, m.port, m.key, m.part, m.of_neighbour, m.parts);
}
void fields(auto& v, is<keep_word> auto& m) {
    all(v, m.what, m.round, m.step, m.file, m.address, m.port, m.key, m.fault);
    v.list(m.copies);
}
void fields(auto& v, is<place_states> auto& m) {
    all(v, m.hosts, m.ranks, m.world_size);
}
void fields(auto& v, is<states_placed> auto& m) {
    all(v, m.files, m.parts, m.free_part, m.step, m.world_size, m.notes);
}

void fields(auto& v, is<examine> auto& m) {
    auto& q = m.what;
    all(v, q.program, q.working_dir, q.variables, q.own_step, q.names, q.address, q.network_interface, q.limit);
}
void fields(auto& v, is<gpu_state> auto& m) {
    all(v, m.index, m.uuid, m.pci, m.name, m.memory_bytes, m.used_bytes, m.ecc_errors, m.needs_reset, m.slowed, m.clock_mhz,
        m.most_clock_mhz, m.processes);
}
void fields(auto& v, is<folder_state> auto& m) {
    all(v, m.path, m.free_bytes, m.fault);
}
void fields(auto& v, is<name_fault> auto& m) {
    all(v, m.name, m.fault);
}
void fields(auto& v, is<report> auto& m) {
    auto& n = m.node;
    all(v, n.version, n.host, n.address, n.interface, n.address_fault, n.port, n.cores, n.cpus, n.cpu_list, n.gpu_note,
        n.machine_fault, n.program, n.program_fault, n.working_dir_fault, n.unfinished, n.asked_at, n.answered_at);
    v.list(n.gpus);
    v.list(n.folders);
    v.list(n.unresolved);
}
void fields(auto& v, is<reach> auto& m) {
    all(v, m.address, m.port);
}
void fields(auto& v, is<reached> auto& m) {
    all(v, m.fault);
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
