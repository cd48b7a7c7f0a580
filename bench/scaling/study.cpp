#include "bench/scaling/study.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace muster {

namespace {

using nlohmann::json;

json to_json(machine_facts const& m) {
    return {{"host", m.host},         {"processor", m.processor},       {"cores", m.cores},   {"clock_mhz", m.clock_mhz},
            {"governor", m.governor}, {"memory_bytes", m.memory_bytes}, {"system", m.system}, {"kernel", m.kernel},
            {"compiler", m.compiler}, {"virtualised", m.virtualised},   {"gpus", m.gpus}};
}

machine_facts read_machine(checked_json const& from) {
    machine_facts m;
    m.host = from.at("host").text();
    m.processor = from.at("processor").text();
    m.cores = static_cast<int>(from.at("cores").integer(1, 1'000'000));
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

}  // namespace

json to_json(study const& s) {
    json out{{"schema", study_schema}, {"kind", "training-scaling"},         {"created", s.created},
             {"command", s.command},   {"launch_command", s.launch_command}, {"context", to_json(s.machine)},
             {"runs", json::array()}};
    for (auto const& r : s.runs)
        out["runs"].push_back({{"ranks", r.ranks},
                               {"repetition", r.repetition},
                               {"order", r.order},
                               {"started", r.started},
                               {"wall_s", r.wall_s},
                               {"load_before", r.load_before},
                               {"oversubscribed", r.oversubscribed},
                               {"simulated", r.simulated},
                               {"train", muster::to_json(r.train)}});
    return out;
}

study read_study(json const& document, std::string const& origin) {
    checked_json const from(document, origin);
    if (auto const schema = from.at("schema").text(); schema != study_schema)
        from.at("schema").fail(fmt::format("is '{}', expected '{}'", schema, study_schema));
    if (auto const kind = from.at("kind").text(); kind != "training-scaling")
        from.at("kind").fail(fmt::format("is '{}', expected 'training-scaling'", kind));
    study s;
    s.created = from.at("created").text();
    s.command = from.at("command").text();
    s.launch_command = from.at("launch_command").text();
    s.machine = read_machine(from.at("context"));
    for (auto const& item : from.at("runs").items()) {
        study_run r;
        r.ranks = static_cast<int>(item.at("ranks").integer(1, 1'000'000));
        r.repetition = static_cast<int>(item.at("repetition").integer(0, 1'000'000));
        r.order = static_cast<int>(item.at("order").integer(0, 1'000'000));
        r.started = item.at("started").text();
        r.wall_s = item.at("wall_s").number();
        r.load_before = item.at("load_before").number();
        r.oversubscribed = item.at("oversubscribed").boolean();
        r.simulated = item.at("simulated").boolean();
        r.train = read_train_record(item.at("train"));
        if (r.train.world_size != r.ranks)
            item.at("train").fail(fmt::format("is a run of {} ranks, where the study says {}", r.train.world_size, r.ranks));
        if (!(r.train.train_s() > 0)) item.at("train").fail("took no time to train");
        s.runs.push_back(std::move(r));
    }
    if (s.runs.empty()) from.at("runs").fail("is empty: the study made no run");
    return s;
}

}  // namespace muster
