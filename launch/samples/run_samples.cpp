#include "launch/samples/run_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/trusted_file.hpp"

namespace muster {

namespace {

using nlohmann::ordered_json;

constexpr char const* schema = "muster.samples/1";
constexpr double most = 1e18;  ///< no number of a sample is larger

// Each list of fields serves the writer and the reader.

template <typename Of, typename Fields>
void list_fields(waits_for_rank const*, Of& of, Fields& to) {
    to("rank", of.rank), to("times", of.times), to("waited_s", of.waited_s);
}

template <typename Of, typename Fields>
void list_fields(wait_sample const*, Of& of, Fields& to) {
    to("collectives", of.collectives), to("waited_s", of.waited_s), to("waiting", of.waiting);
    to("kept_waiting_s", of.kept_waiting_s), to("came_last", of.came_last), to("longest", of.longest);
}

template <typename Of, typename Fields>
void list_fields(cgroup_sample const*, Of& of, Fields& to) {
    to("throttled_s", of.throttled_s), to("throttled_of_run", of.throttled_of_run), to("throttled", of.throttled);
    to("memory_bytes", of.memory_bytes), to("memory_limit_bytes", of.memory_limit_bytes);
    to("cpu_pressure", of.cpu_pressure), to("memory_pressure", of.memory_pressure), to("io_pressure", of.io_pressure);
}

template <typename Of, typename Fields>
void list_fields(rank_sample const*, Of& of, Fields& to) {
    to("rank", of.rank), to("pid", of.pid), to("state", of.state), to("where", of.where), to("age_s", of.age_s);
    to("user_s", of.user_s), to("system_s", of.system_s), to("cores", of.cores), to("allowed_cores", of.allowed_cores);
    to("threads", of.threads), to("memory_bytes", of.memory_bytes), to("most_memory_bytes", of.most_memory_bytes);
    to("major_faults", of.major_faults), to("faults_per_s", of.faults_per_s);
    to("read_bytes", of.read_bytes), to("written_bytes", of.written_bytes);
    to("silent_s", of.silent_s), to("metric", of.metric), to("gpu", of.gpu), to("cgroup", of.cgroup), to("waits", of.waits);
}

template <typename Of, typename Fields>
void list_fields(gpu_sample const*, Of& of, Fields& to) {
    to("number", of.number), to("name", of.name), to("busy_percent", of.busy_percent);
    to("memory_bytes", of.memory_bytes), to("used_bytes", of.used_bytes), to("watts", of.watts);
    to("clock_mhz", of.clock_mhz), to("most_clock_mhz", of.most_clock_mhz), to("slowed", of.slowed), to("celsius", of.celsius);
    to("ecc_errors", of.ecc_errors), to("remapped_rows", of.remapped_rows), to("link_replays", of.link_replays);
    to("mean_busy_percent", of.mean_busy_percent), to("most_used_bytes", of.most_used_bytes);
    to("mean_clock_mhz", of.mean_clock_mhz), to("slowed_share", of.slowed_share), to("was_slowed", of.was_slowed);
}

template <typename Of, typename Fields>
void list_fields(node_sample const*, Of& of, Fields& to) {
    to("host", of.host), to("at_s", of.at_s), to("load", of.load), to("memory_bytes", of.memory_bytes), to("cpus", of.cpus),
        to("steal", of.steal);
    to("steal_s", of.steal_s), to("interface", of.interface), to("received_bytes_per_s", of.received_bytes_per_s);
    to("sent_bytes_per_s", of.sent_bytes_per_s), to("gpus", of.gpus), to("ranks", of.ranks);
}

template <typename Of, typename Fields>
void list_fields(run_samples const*, Of& of, Fields& to) {
    to("job", of.job), to("command", of.command), to("generation", of.generation), to("world_size", of.world_size);
    to("started_s", of.started_s), to("every_s", of.every_s), to("nodes", of.nodes);
}

template <typename T>
ordered_json json_of(T const& value);

/// Numbers of seconds and shares need no more digits than a look is exact to.
double rounded(double value) {
    return std::round(value * 1e4) / 1e4;
}

struct field_writer {
    ordered_json& to;

    template <typename T>
    void operator()(char const* name, T const& value) {
        if constexpr (requires { value.has_value(); }) {
            if (value) to[name] = json_of(*value);
        } else if constexpr (std::is_same_v<T, std::string>) {
            if (!value.empty()) to[name] = value;
        } else {
            auto row = json_of(value);
            if (!row.is_object() || !row.empty()) to[name] = std::move(row);
        }
    }
};

template <typename T>
ordered_json json_of(T const& value) {
    if constexpr (std::is_same_v<T, char>) {
        return std::string(1, value);
    } else if constexpr (std::is_floating_point_v<T>) {
        return rounded(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
        return value;
    } else if constexpr (requires { value.begin(); }) {
        auto rows = ordered_json::array();
        for (auto const& each : value) rows.push_back(json_of(each));
        return rows;
    } else {
        auto row = ordered_json::object();
        field_writer to{row};
        list_fields(static_cast<T const*>(nullptr), value, to);
        return row;
    }
}

template <typename T>
bool read_value(ordered_json const& from, T& value);

struct field_reader {
    ordered_json const& from;

    template <typename T>
    void operator()(char const* name, T& value) {
        auto const found = from.find(name);
        if (found == from.end()) return;
        if constexpr (requires { value.has_value(); }) {
            typename T::value_type content{};
            if (read_value(*found, content)) value = std::move(content);
        } else {
            read_value(*found, value);
        }
    }
};

/// Leaves the value as it is where the JSON is of another type.
template <typename T>
bool read_value(ordered_json const& from, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
        if (!from.is_string()) return false;
        value = without_controls(from.get<std::string>());
        std::ranges::replace_if(
            value, [](char c) { return c == '\n' || c == '\t'; }, ' ');
    } else if constexpr (std::is_same_v<T, char>) {
        if (!from.is_string() || from.get_ref<std::string const&>().size() != 1) return false;
        auto const letter = from.get_ref<std::string const&>().front();
        if (letter <= ' ' || letter > '~') return false;
        value = letter;
    } else if constexpr (std::is_arithmetic_v<T>) {
        if (!from.is_number()) return false;
        auto const number = from.get<double>();
        double const least = std::is_unsigned_v<T> ? 0 : std::is_same_v<T, int> ? -1 : -most;
        double const largest = std::is_same_v<T, int> ? 2e9 : most;
        if (!std::isfinite(number) || number < least || number > largest) return false;
        value = from.get<T>();
    } else if constexpr (requires { value.push_back({}); }) {
        if (!from.is_array()) return false;
        for (auto const& each : from) {
            typename T::value_type row{};
            if (read_value(each, row)) value.push_back(std::move(row));
        }
    } else {
        if (!from.is_object()) return false;
        field_reader fields{from};
        list_fields(static_cast<T const*>(nullptr), value, fields);
    }
    return true;
}

}  // namespace

std::string samples_json(run_samples const& of) {
    ordered_json all{{"schema", schema}};
    all.update(json_of(of));
    return json_text(all) + "\n";
}

std::optional<run_samples> parse_samples(std::string_view text) {
    auto const all = parse_json_or_discard<ordered_json>(text);
    run_samples found;
    if (!all.is_object() || text_at(all, "/schema") != schema || !read_value(all, found)) return std::nullopt;
    return found;
}

std::optional<run_samples> read_samples(std::string const& run_folder) {
    auto const text = read_small_file(fmt::format("{}/{}", run_folder, samples_file), "samples of a run", longest_samples_bytes);
    return text ? parse_samples(*text) : std::nullopt;
}

}  // namespace muster
