#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/text_table.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/version.hpp"
#include "bench/dev/dev_commands.hpp"
#include "bench/tools/crowd.hpp"
#include "bench/tools/machine.hpp"
#include "bench/tools/options.hpp"
#include "bench/tools/statistics.hpp"
#include "bench/tools/temporary_folder.hpp"

namespace muster {

namespace {

constexpr option_row recover_options[]{
    {"ranks", 0, "N", "ranks, one of which is killed; at least 3", "4"},
    {"repeats", 0, "N", "runs of each, taking turns", "20"},
    {"ways", 0, "LIST", "of in-place, warm-spare, spare, restart, torchrun, torchft, torchft-defaults",
     "in-place,warm-spare,spare,restart,torchrun", false, "in-place warm-spare spare restart torchrun torchft torchft-defaults"},
    {"python", 0, "PATH", "the interpreter of muster's runs, with PyTorch", "python3"},
    {"peer-python", 0, "PATH", "the interpreter of torchrun and torchft; default: that of --python", ""},
    {"muster", 0, "PATH", "the launcher; default: muster in this program's folder", ""},
    strict_option,
};

constexpr std::chrono::seconds longest_run{120};
/// After the death of the rank, in the order of their columns; `seen` is the launcher's word, the others are the ranks' own.
constexpr std::string_view phases[]{"seen", "told", "met", "state", "step", "whole"};
constexpr std::string_view headers[]{"seen", "told", "met", "state", "first step", "all again"};

struct recovery_way {
    std::string name, title;
    std::vector<std::string> command;
    environment variables;
    std::string record = {};                             ///< run.json of muster's
    std::map<std::string, std::vector<double>> ms = {};  ///< by phase, since the death
    int failed = 0;
    std::string failure = {};
};

/// Returns the last line "recover EVENT SECONDS" of each event, which is that of the slowest rank.
std::map<std::string, double> read_events(std::string_view output) {
    std::map<std::string, double> last;
    for (auto const line : split(output, '\n')) {
        auto const words = split(line, ' ');
        if (words.size() != 3 || words[0] != "recover") continue;
        auto& at = last[std::string(words[1])];
        at = std::max(at, std::atof(std::string(words[2]).c_str()));
    }
    return last;
}

/// When the launcher saw the death, on the clock of the ranks; nothing if the record tells none.
std::optional<double> seen_at(std::string const& record) {
    auto const all = parse_json_or_discard<nlohmann::json>(read_text_file(record));
    if (!all.is_object() || !all.contains("generations") || all["generations"].empty()) return std::nullopt;
    return all["generations"][0].value("at_s", -1.0);
}

void note_failure(recovery_way& way, std::string why) {
    if (way.failed++ == 0) way.failure = std::move(why);
}

void run_once(recovery_way& way) {
    if (auto const ready = way.variables.get_or("RECOVER_READY", ""); !ready.empty()) std::filesystem::remove(ready);
    auto const ended = run_captured(way.command, way.variables, longest_run);
    auto events = read_events(ended.out);
    if (ended.exit_status != 0 || !events.contains("kill") || !events.contains("step")) {
        auto const lines = split(trim(ended.err), '\n');
        return note_failure(way, fmt::format("exit code {}: {}", ended.exit_status, lines.empty() ? "" : lines.back()));
    }
    if (!way.record.empty())
        if (auto const seen = seen_at(way.record)) events["seen"] = *seen;
    for (auto const phase : phases)
        if (auto const at = events.find(std::string(phase)); at != events.end())
            way.ms[at->first].push_back((at->second - events["kill"]) * 1e3);
    if (events.contains("imports")) way.ms["imports"].push_back(events["imports"] * 1e3);
}

/// Returns the output of `python -c PROGRAM`; empty if it fails.
std::string ask(std::string const& python, std::string const& program, environment const& variables) {
    auto const said = run_captured({python, "-c", program}, variables, std::chrono::seconds(60));
    return said.exit_status == 0 ? std::string(trim(said.out)) : std::string();
}

recovery_way way_of_muster(std::string name, std::string title, std::vector<std::string> const& options,
                           given_options const& given, std::string const& folder, environment variables) {
    auto const ranks = given.text("ranks");
    bool const warm = name == "warm-spare", spare = warm || name == "spare";
    std::vector<std::string> command{launcher_of(given),
                                     "run",
                                     "-q",
                                     "-n",
                                     ranks,
                                     "--output-dir",
                                     folder + "/" + name,
                                     "--slots-per-node",
                                     std::to_string(std::stoi(ranks) + spare)};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", given.text("python"), folder + "/recover.py", "muster"});
    variables.set("RECOVER_RANKS", ranks);
    variables.set("RECOVER_SPARES", spare ? "1" : "0");
    variables.set("RECOVER_READY", warm ? folder + "/" + name + "/ready" : "");
    auto record = folder + "/" + name + "/run.json";
    return {std::move(name), std::move(title), std::move(command), std::move(variables), std::move(record)};
}

/// torchrun's agent and workers share a store by default, and then most restarts fail: the next generation finds what the lost one left.
recovery_way way_of_torchrun(std::string const& python, std::string const& torch, given_options const& given,
                             std::string const& folder, environment variables) {
    variables.set("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1");
    variables.set("OMP_NUM_THREADS", "1");
    return {"torchrun",
            fmt::format("torchrun {}, restart", torch),
            {python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", given.text("ranks"), "--max_restarts",
             "3", "--monitor_interval", "0.1", folder + "/recover.py", "ddp"},
            std::move(variables)};
}

/// With a lighthouse that waits for 100 ms for ranks that have not come, as often as a rank says that it lives; or with that of its defaults.
recovery_way way_of_torchft(std::string const& python, std::string const& versions, given_options const& given,
                            std::string const& folder, environment variables, bool defaults) {
    variables.set("OMP_NUM_THREADS", "1");
    return {defaults ? "torchft-defaults" : "torchft",
            fmt::format("without the lost one, torchft {}{}", versions, defaults ? ", its defaults" : ""),
            {python, folder + "/recover.py", "torchft", given.text("ranks"), defaults ? "60000" : "100"},
            std::move(variables)};
}

std::vector<recovery_way> find_ways(given_options const& given, std::string const& folder, environment const& variables) {
    auto const python = given.text("python"), peer_python = given.has("peer-python") ? given.text("peer-python") : python;
    auto const torch = ask(python, "import torch; print(torch.__version__)", variables);
    if (torch.empty()) throw error(errc::not_found, fmt::format("--python: {} has no PyTorch; name one that has", python));
    write_output_file(folder + "/recover.py", find_text(dev_files(), "recover.py"));
    std::vector<recovery_way> ways;
    auto const wanted = given.text("ways");
    for (auto const name : split(wanted, ',')) {
        auto const own = [&](std::string title, std::vector<std::string> const& options) {
            ways.push_back(
                way_of_muster(std::string(name), fmt::format("{} {}", title, version()), options, given, folder, variables));
        };
        if (name == "in-place")
            own("in place, muster", {"--min-np", "2"});
        else if (name == "warm-spare")
            own("in place, with a warm spare, muster", {"--min-np", "2", "--spares", "1", "--warm-spares"});
        else if (name == "spare")
            own("in place, with a spare, muster", {"--min-np", "2", "--spares", "1"});
        else if (name == "restart")
            own("restart, muster", {"--max-restarts", "1"});
        else if (name == "torchft" || name == "torchft-defaults") {
            auto const peer =
                ask(peer_python,
                    "import importlib.metadata as m, torchft; print(m.version('torchft') + ', torch ' + m.version('torch'))",
                    variables);
            if (peer.empty())
                throw error(errc::not_found,
                            fmt::format("--ways {}: {} has no torchft; name one that has by --peer-python", name, peer_python));
            ways.push_back(way_of_torchft(peer_python, peer, given, folder, variables, name != "torchft"));
        } else if (name != "torchrun")
            throw error(
                errc::usage,
                fmt::format("--ways: '{}' is unknown; give some of in-place, warm-spare, spare, restart, torchrun, torchft, "
                            "torchft-defaults",
                            name));
        else if (auto const peer = ask(peer_python, "import torch; print(torch.__version__)", variables); peer.empty())
            fmt::print("torchrun is left out: {} has no PyTorch\n", peer_python);
        else
            ways.push_back(way_of_torchrun(peer_python, peer, given, folder, variables));
    }
    return ways;
}

void print_table(std::vector<recovery_way> const& ways, int repeats) {
    std::vector<std::vector<std::string>> rows{{"ms since a rank was killed, to the last of the others"}};
    for (auto const header : headers) rows.front().emplace_back(header);
    rows.front().insert(rows.front().end(), {"smallest", "largest", "imports", "failed"});
    for (auto const& way : ways) {
        auto const middle = [&](std::string_view phase) {
            auto const found = way.ms.find(std::string(phase));
            return found == way.ms.end() ? std::string("-") : fmt::format("{:.0f}", median(found->second));
        };
        auto& row = rows.emplace_back(std::vector<std::string>{way.title});
        for (auto const phase : phases) row.push_back(middle(phase));
        auto const steps = way.ms.find("step");
        bool const any = steps != way.ms.end();
        row.push_back(any ? fmt::format("{:.0f}", *std::min_element(steps->second.begin(), steps->second.end())) : "-");
        row.push_back(any ? fmt::format("{:.0f}", *std::max_element(steps->second.begin(), steps->second.end())) : "-");
        row.push_back(middle("imports"));
        row.push_back(std::to_string(way.failed));
    }
    fmt::print("medians of {} taking turns; smallest and largest: of the first step\n{}", counted(repeats, "run"),
               align_columns(rows));
    for (auto const& way : ways)
        if (way.failed > 0) fmt::print("{}: {} of {} runs failed; the first: {}\n", way.title, way.failed, repeats, way.failure);
}

}  // namespace

constexpr command_row recover_row{
    .name = "recover",
    .summary = "how long ranks take to go on after one of them was killed, in parts",
    .synopsis = "[options]",
    .examples =
        "  muster-bench-dev recover                                 in place, with spares, by a restart, and torchrun's restart\n"
        "  muster-bench-dev recover --ways in-place --repeats 50    only one of them\n",
    .options = recover_options,
    .description =
        "Trains a small model with PyTorch on this node, kills a rank between forward and backward, and times what the others "
        "do.",
    .closing = R"(
seen: the launcher knows; told: a collective has failed on all others; met: they have their new world; state: they have gone back to the last
commit and have rank 0's state; first step: all have made a step; all again: a rank in the lost one's place has made one with them.
A warm spare waits in init() when the rank dies.
imports: what importing PyTorch takes in a rank that is started again; it is part of the times of restarts.
torchrun runs with --max-restarts 3 --monitor-interval 0.1 and DDP over gloo; torchft with replica groups of one rank, and a lighthouse that waits for
ranks for 100 ms (its join_timeout_ms); torchft-defaults with one that waits for 60 s, and for 5 s for a rank that says nothing.
)",
};

int recover_command(given_options const& given, environment const& variables) {
    int const ranks = count_of(given, "ranks", 3), repeats = count_of(given, "repeats");
    temporary_folder const folder("muster-recover", variables);
    auto ways = find_ways(given, folder.path(), variables);
    crowd_watch const crowd;
    refuse_crowd(given, crowd.load(false));
    auto const machine = describe_machine();
    fmt::print("{}, {} cores, load {:.1f}; {} ranks\n", machine.processor, machine.cores, load_average(), ranks);
    for (int i = 0; i < repeats; ++i)
        for (auto& way : ways) run_once(way);
    print_table(ways, repeats);
    fmt::print("{}", busy_line(crowd.load(true)));
    return std::all_of(ways.begin(), ways.end(), [](auto const& way) { return way.record.empty() || way.failed == 0; }) ? 0 : 1;
}

}  // namespace muster
