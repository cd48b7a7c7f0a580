#include "bench/study/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/throw_error.hpp"

namespace muster {

namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> status_names{"ok", "failed", "timed_out", "interrupted"};
constexpr std::array<std::string_view, 3> series_names{"as-given", "strong", "weak"};
constexpr std::int64_t most = 1'000'000;

template <class Enum, std::size_t N>
Enum read_name(checked_json const& from, std::array<std::string_view, N> const& names) {
    auto const found = std::find(names.begin(), names.end(), from.text());
    if (found == names.end()) from.fail(fmt::format("is '{}', expected one of {}", from.text(), fmt::join(names, ", ")));
    return static_cast<Enum>(found - names.begin());
}

int read_int(checked_json const& from, std::int64_t low, std::int64_t high = most) {
    return static_cast<int>(from.integer(low, high));
}

std::vector<std::string> read_texts(checked_json const& from) {
    std::vector<std::string> out;
    for (auto const& item : from.items()) out.push_back(item.text());
    return out;
}

template <class Number>
json optional_number(std::optional<Number> const& value) {
    return value ? json(*value) : json();
}

std::optional<long> read_optional(checked_json const& from) {
    if (from.value().is_null()) return {};
    return from.integer();
}

json to_json(machine_facts const& m) {
    json out = machine_json(m);
    out["gpus"] = m.gpus;
    return out;
}

machine_facts read_machine(checked_json const& from) {
    machine_facts m;
    m.host = from.at("host").text();
    m.processor = from.at("processor").text();
    m.cores = read_int(from.at("cores"), 1);
    m.clock_mhz = from.at("clock_mhz").number();
    m.governor = from.at("governor").text();
    m.memory_bytes = static_cast<std::uint64_t>(from.at("memory_bytes").integer(0, INT64_MAX));
    m.system = from.at("system").text();
    m.kernel = from.at("kernel").text();
    m.compiler = from.at("compiler").text();
    m.virtualised = from.at("virtualised").boolean();
    m.gpus = from.at("gpus").text();
    return m;
}

json to_json(study_plan const& p) {
    json out{{"program", p.program},
             {"net", p.net},
             {"protocol", p.protocol},
             {"notes", p.notes},
             {"series", to_string(p.series)},
             {"batch", optional_number(p.batch)},
             {"ranks", p.ranks},
             {"repeats", p.repeats},
             {"warmup", p.warmup},
             {"shuffle", optional_number(p.shuffle)},
             {"metrics", json::array()},
             {"metric_file", p.metric_file},
             {"take", json::array()},
             {"judged", {{"name", p.judged.name}, {"rate", p.judged.rate}}},
             {"launch", p.launch},
             {"timeout_s", p.timeout_s}};
    for (auto const& m : p.patterns) out["metrics"].push_back({{"name", m.name}, {"unit", m.unit}, {"regex", m.regex}});
    for (auto const& c : p.choices) out["take"].push_back({{"name", c.name}, {"which", c.which}, {"across", c.across}});
    return out;
}

study_plan read_plan(checked_json const& from) {
    study_plan p;
    p.program = read_texts(from.at("program"));
    p.net = from.at("net").text();
    p.protocol = from.at("protocol").text();
    p.notes = read_texts(from.at("notes"));
    p.series = read_name<work_series>(from.at("series"), series_names);
    p.batch = read_optional(from.at("batch"));
    for (auto const& n : from.at("ranks").items()) p.ranks.push_back(read_int(n, 1));
    p.repeats = read_int(from.at("repeats"), 1);
    p.warmup = read_int(from.at("warmup"), 0);
    p.shuffle = read_optional(from.at("shuffle"));
    for (auto const& m : from.at("metrics").items())
        p.patterns.push_back({m.at("name").text(), m.at("unit").text(), m.at("regex").text()});
    p.metric_file = from.at("metric_file").text();
    for (auto const& c : from.at("take").items())
        p.choices.push_back({c.at("name").text(), c.at("which").text(), c.at("across").text()});
    p.judged = {from.at("judged").at("name").text(), from.at("judged").at("rate").boolean()};
    p.launch = read_texts(from.at("launch"));
    p.timeout_s = from.at("timeout_s").number();
    return p;
}

json to_json(study_point const& p) {
    json out{{"ranks", p.ranks}, {"nodes", p.nodes},        {"hosts", p.hosts}, {"oversubscribed", p.oversubscribed},
             {"gpus", p.gpus},   {"places", json::array()}, {"cores", p.cores}};
    for (auto const& r : p.places)
        out["places"].push_back({{"rank", r.rank}, {"host", r.host}, {"cpus", r.cpus}, {"gpu", r.gpu}});
    return out;
}

study_point read_point(checked_json const& from) {
    study_point p;
    p.ranks = read_int(from.at("ranks"), 1);
    p.nodes = read_int(from.at("nodes"), 1);
    p.hosts = read_texts(from.at("hosts"));
    p.oversubscribed = from.at("oversubscribed").boolean();
    p.gpus = from.at("gpus").text();
    if (from.has("cores")) p.cores = read_int(from.at("cores"), 0);
    for (auto const& r : from.at("places").items())
        p.places.push_back({read_int(r.at("rank"), 0), r.at("host").text(), r.at("cpus").text(), r.at("gpu").text()});
    return p;
}

metric_series read_series(checked_json const& from) {
    metric_series s;
    s.name = from.at("name").text();
    s.unit = from.at("unit").text();
    s.rank = read_int(from.at("rank"), -1, INT32_MAX);
    for (auto const& v : from.at("values").items()) s.values.push_back(v.number());
    if (s.values.empty()) from.at("values").fail("is empty: a metric that nobody told");
    return s;
}

}  // namespace

std::string_view to_string(run_status status) noexcept {
    return status_names[static_cast<std::size_t>(status)];
}

std::string_view to_string(work_series series) noexcept {
    return series_names[static_cast<std::size_t>(series)];
}

json to_json(study_run const& r) {
    json out{{"ranks", r.ranks},           {"nodes", r.nodes},        {"hosts", r.hosts},
             {"repetition", r.repetition}, {"order", r.order},        {"warmup", r.warmup},
             {"started", r.started},       {"wall_s", r.wall_s},      {"status", to_string(r.status)},
             {"exit_code", r.exit_code},   {"reason", r.reason},      {"last_words", r.last_words},
             {"output", r.output},         {"load", to_json(r.load)}, {"oversubscribed", r.oversubscribed},
             {"simulated", r.simulated},   {"metrics", json::array()}};
    for (auto const& m : r.metrics)
        out["metrics"].push_back({{"name", m.name}, {"unit", m.unit}, {"rank", m.rank}, {"values", m.values}});
    if (auto const& one = r.remarked)
        out["remarked"] = {
            {"rank", one->rank}, {"host", one->host}, {"kept_waiting", one->kept_waiting}, {"reason", one->reason}};
    return out;
}

study_run read_study_run(checked_json const& from) {
    study_run r;
    r.ranks = read_int(from.at("ranks"), 1);
    r.nodes = read_int(from.at("nodes"), 1);
    r.hosts = read_texts(from.at("hosts"));
    r.repetition = read_int(from.at("repetition"), 0);
    r.order = read_int(from.at("order"), 0);
    r.warmup = from.at("warmup").boolean();
    r.started = from.at("started").text();
    r.wall_s = from.at("wall_s").number();
    r.status = read_name<run_status>(from.at("status"), status_names);
    r.exit_code = read_int(from.at("exit_code"), 0, 255);
    r.reason = from.at("reason").text();
    if (from.has("last_words")) r.last_words = from.at("last_words").text();
    r.output = from.at("output").text();
    r.load = read_load(from.at("load"));
    r.oversubscribed = from.at("oversubscribed").boolean();
    r.simulated = from.at("simulated").boolean();
    for (auto const& m : from.at("metrics").items()) r.metrics.push_back(read_series(m));
    if (from.has("remarked")) {
        auto const one = from.at("remarked");
        r.remarked = {read_int(one.at("rank"), 0), one.at("host").text(), one.at("kept_waiting").number(),
                      one.at("reason").text()};
    }
    if (r.counts() && !(r.wall_s > 0)) from.at("wall_s").fail("is no time that a run takes");
    return r;
}

json to_json(study const& s) {
    json out{{"schema", study_schema},
             {"name", s.name},
             {"created", s.created},
             {"command", s.command},
             {"launch_command", s.launch_command},
             {"version", s.version},
             {"scheduler", s.scheduler},
             {"folder", s.folder},
             {"context", to_json(s.machine)},
             {"load", to_json(s.load)},
             {"variables", json::object()},
             {"software", json::object()},
             {"plan", to_json(s.plan)},
             {"points", json::array()},
             {"runs", json::array()}};
    for (auto const& [name, value] : s.variables) out["variables"][name] = value;
    for (auto const& [name, value] : s.software) out["software"][name] = value;
    for (auto const& p : s.points) out["points"].push_back(to_json(p));
    for (auto const& r : s.runs) out["runs"].push_back(to_json(r));
    return out;
}

study read_study_header(checked_json const& from) {
    if (auto const schema = from.at("schema").text(); schema != study_schema)
        from.at("schema").fail(fmt::format("is '{}', expected '{}'", schema, study_schema));
    study s;
    s.name = from.at("name").text();
    s.created = from.at("created").text();
    s.command = from.at("command").text();
    s.launch_command = from.at("launch_command").text();
    s.version = from.at("version").text();
    s.scheduler = from.at("scheduler").text();
    s.folder = from.at("folder").text();
    s.machine = read_machine(from.at("context"));
    s.load = read_load(from.at("load"));
    auto const variables = from.at("variables");
    if (!variables.value().is_object()) variables.fail("is no object of names and values");
    for (auto const& [name, value] : variables.value().items()) s.variables.emplace_back(name, variables.at(name).text());
    if (from.has("software")) {
        auto const software = from.at("software");
        for (auto const& [name, value] : software.value().items()) s.software.emplace_back(name, software.at(name).text());
    }
    s.plan = read_plan(from.at("plan"));
    for (auto const& p : from.at("points").items()) s.points.push_back(read_point(p));
    return s;
}

study read_study(json const& document, std::string const& origin) {
    checked_json const from(document, origin);
    auto s = read_study_header(from);
    for (auto const& item : from.at("runs").items()) s.runs.push_back(read_study_run(item));
    if (s.runs.empty()) from.at("runs").fail("is empty: the study made no run");
    return s;
}

namespace {

/// Returns "7, 9" for those that had not ended when last asked; or "all have ended".
std::string jobs_text(std::string const& file) {
    auto const document = read_json_file(file);
    checked_json const from(document, file);
    std::vector<std::string> live;
    for (auto const& job : from.at("jobs").items())
        if (job.at("phase").text() != "ended") live.push_back(job.at("id").text());
    return live.empty() ? "all have ended" : fmt::format("not ended: {}", fmt::join(live, ", "));
}

}  // namespace

std::string results_file(std::string const& path) {
    std::filesystem::path file = path;
    std::error_code ignored;
    if (!std::filesystem::is_directory(file, ignored)) return path;
    bool const by_jobs = std::filesystem::exists(file / "jobs.json", ignored);
    file /= "results.json";
    if (by_jobs && !std::filesystem::exists(file, ignored))
        throw_error(errc::usage,
                    "{0}: its runs are made by jobs ({1}), and what they bring is not collected yet; collect it by: muster-bench "
                    "scale --submit --collect -o {0}",
                    path, jobs_text(path + "/jobs.json"));
    return file.string();
}

study read_study_file(std::string const& path) {
    auto const file = results_file(path);
    return read_study(read_json_file(file, "give the results.json that muster-bench scale wrote"), file);
}

}  // namespace muster
