#include "launch/plan_command.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "launch/options.hpp"
#include "launch/placement_options.hpp"
#include "launch/table.hpp"

namespace muster {

namespace po = boost::program_options;

namespace {

constexpr char const* help = R"(muster plan [-n N] [options]      where each rank would go; starts nothing

  muster plan                 one rank for each GPU (without GPUs: for each core)
  muster plan -n 4 --json

placement, as for muster run
{}  --topology FILE.xml         another machine, as written by lstopo FILE.xml (cores only)
  --json                      for programs
)";

std::string numa_text(int numa) {
    return numa < 0 ? "-" : std::to_string(numa);
}

}  // namespace

std::string plan_table(placement const& where) {
    text_table table({"rank", "host", "GPU", "cores", "NUMA", "NIC", "why"});
    for (std::size_t r = 0; r < where.bindings.size(); ++r) {
        auto const& b = where.bindings[r];
        table.add({std::to_string(r), where.machine.host, b.device ? fmt::format("{} {}", b.device->index, b.device->uuid) : "-",
                   b.cores.empty() ? "any" : b.cores.to_list(), numa_text(b.numa), b.nic.value_or("-"), b.why});
    }
    return table.text();
}

std::string plan_json(placement const& where) {
    nlohmann::ordered_json plan;
    plan["schema"] = "muster.plan/1";
    plan["scheduler"] = to_string(where.given.scheduler);
    plan["world_size"] = where.map.world_size();
    plan["note"] = where.map.note;
    plan["gpus"] = where.machine.gpu_note;
    plan["nodes"] = nlohmann::ordered_json::array({{{"name", where.machine.host},
                                                    {"ranks", where.map.world_size()},
                                                    {"cores", where.machine.cores.size()},
                                                    {"allowed_cpus", where.machine.allowed().to_list()}}});
    plan["ranks"] = nlohmann::ordered_json::array();
    for (std::size_t r = 0; r < where.bindings.size(); ++r) {
        auto const& b = where.bindings[r];
        nlohmann::ordered_json row{{"rank", r}, {"host", where.machine.host}, {"local_rank", r}};
        row["gpu"] = nullptr;
        if (b.device)
            row["gpu"] = {{"index", b.device->index}, {"uuid", b.device->uuid}, {"pci", b.device->pci}, {"name", b.device->name}};
        row["cpus"] = nullptr;
        if (!b.cores.empty()) row["cpus"] = b.cores.to_list();
        row["numa"] = nullptr;
        if (b.numa >= 0) row["numa"] = b.numa;
        row["nic"] = nullptr;
        if (b.nic) row["nic"] = *b.nic;
        row["why"] = b.why;
        plan["ranks"].push_back(std::move(row));
    }
    return plan.dump(2) + "\n";
}

int plan_command(std::vector<std::string> const& args, environment const& variables) {
    po::options_description known;
    add_placement_options(known);
    known.add_options()("topology", po::value<std::string>()->default_value(""))("json", po::bool_switch())("help,h",
                                                                                                            po::bool_switch());
    std::vector<std::string> rest;
    auto const values = parse_options(args, known, rest);
    if (values["help"].as<bool>()) {
        fmt::print(fmt::runtime(help), placement_help);
        return 0;
    }
    auto const where = place_ranks(read_placement_options(values), variables, values["topology"].as<std::string>(),
                                   read_scheduler_local(values));
    if (values["json"].as<bool>()) {
        fmt::print("{}", plan_json(where));
        return 0;
    }
    fmt::print("{}", plan_table(where));
    if (!where.map.note.empty()) fmt::print(stderr, "muster: note: {}\n", where.map.note);
    if (where.machine.gpus.empty()) fmt::print(stderr, "muster: note: no GPU, so slots are cores: {}\n", where.machine.gpu_note);
    return 0;
}

}  // namespace muster
