
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/text.hpp"
#include "base/units.hpp"
#include "launch/preflight/probed_node.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

constexpr std::size_t most_lines = 16;  ///< for one severity: each of 3,000 nodes may have its own message

/// Collects what is wrong with one node after the other.
class fault_finder {
  public:
    fault_finder(std::vector<probed_node> const& nodes, node_limits const& wanted) : nodes_(nodes), wanted_(wanted) {}

    std::vector<node_finding> all() {
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            at_ = static_cast<int>(n);
            auto const& node = nodes_[n];
            if (!node.report) {
                bad("it " + node.silence, "check that node, or ask for another one");
                continue;
            }
            if (node.report->version != wanted_.version) {  // the rest was not asked
                bad(fmt::format("has muster {}, and this is muster {}", node.report->version, wanted_.version),
                    "install the same version on every node");
                continue;
            }
            check_program(*node.report);
            check_folders(*node.report);
            check_gpus(node);
            check_network(node);
        }
        find_twins();
        check_names();
        std::ranges::stable_sort(found_, [](node_finding const& a, node_finding const& b) {
            return std::pair(a.node, a.how == severity::note) < std::pair(b.node, b.how == severity::note);
        });
        return std::move(found_);
    }

  private:
    void bad(std::string what, std::string advice) {
        found_.push_back({at_, severity::error, std::move(what), std::move(advice)});
    }
    void note(std::string what, std::string advice) {
        found_.push_back({at_, severity::note, std::move(what), std::move(advice)});
    }

    void check_program(node_report const& r) {
        if (!r.working_dir_fault.empty())
            bad("cannot use the working directory there: " + r.working_dir_fault, "use a folder that every node has (--wd)");
        if (!r.program_fault.empty()) bad(r.program_fault, "");
        if (!r.machine_fault.empty()) bad(r.machine_fault, "");
        if (!r.unfinished.empty())
            bad(fmt::format("no answer in time about {}", join(r.unfinished, ", ")),
                "a file server or name service may hang there");
    }

    void check_folders(node_report const& r) {
        for (auto const& folder : r.folders) {
            bool const memory = folder.path == "/dev/shm";
            auto const least = memory ? wanted_.least_shm_bytes : wanted_.least_tmp_bytes;
            auto const enough = memory ? wanted_.wanted_shm_bytes : wanted_.wanted_tmp_bytes;
            auto const advice = memory ? "remove what jobs before this one left there" : "free some, or set TMPDIR";
            if (!folder.fault.empty())
                bad(fmt::format("cannot write to {}: {}", folder.path, folder.fault), "mount or open it, or set TMPDIR");
            else if (folder.free_bytes < enough)
                found_.push_back({at_, folder.free_bytes < least ? severity::error : severity::note,
                                  fmt::format("{} has only {} free", folder.path, format_bytes(folder.free_bytes)), advice});
        }
    }

    void check_gpus(probed_node const& node) {
        auto const& r = *node.report;
        int const count = static_cast<int>(r.gpus.size());
        if (node.gpus_expected && count < *node.gpus_expected && r.machine_fault.empty() && is_finished(r, "cores and GPUs"))
            bad(fmt::format("has {} of the {} GPUs that the job has there ({})", count, *node.gpus_expected, r.gpu_note),
                "ask for another node, or tell the site");
        for (auto const& gpu : r.gpus) check_gpu(gpu);
    }

    void check_gpu(gpu_state const& gpu) {
        auto const name = fmt::format("GPU {} ({})", gpu.index, gpu.uuid.empty() ? gpu.name : gpu.uuid);
        auto const users = gpu.processes.empty() ? "" : " by " + join(gpu.processes, ", ");
        if (gpu.memory_bytes > 0 &&
            static_cast<double>(gpu.used_bytes) > wanted_.most_gpu_memory_used * static_cast<double>(gpu.memory_bytes))
            bad(fmt::format("{} has {} of its {} in use{}", name, format_bytes(gpu.used_bytes), format_bytes(gpu.memory_bytes),
                            users),
                "end what a job before this one left there");
        else if (!gpu.processes.empty())
            note(fmt::format("{} is in use{}", name, users), "check that this is meant");
        if (gpu.ecc_errors > 0)
            bad(fmt::format("{} has had {} memory errors that could not be corrected", name, gpu.ecc_errors),
                "ask for another node, and tell the site");
        if (gpu.needs_reset) bad(name + " waits for a reset, to replace a part of its memory", "tell the site");
        if (!gpu.slowed.empty()) note(fmt::format("{} is slowed down: {}", name, gpu.slowed), "tell the site");
    }

    void check_network(probed_node const& node) {
        auto const& r = *node.report;
        if (!r.address_fault.empty()) bad(r.address_fault, "");
        if (!node.connect_fault.empty())
            bad(fmt::format("cannot connect to {}: {}", node.towards, node.connect_fault),
                "choose an interface that connects all nodes with --network-interface, or check the firewall");
        if (std::abs(node.clock_ahead_s) - node.clock_error_s > wanted_.most_clock_difference_s)
            note(fmt::format("its clock is {} {} this one", format_duration(duration(std::abs(node.clock_ahead_s))),
                             node.clock_ahead_s > 0 ? "ahead of" : "behind"),
                 "have the site set it");
    }

    /// Finds two names of one machine, with which each of its GPUs would go to two ranks.
    void find_twins() {
        std::map<std::string, int> by_gpu;
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            if (!nodes_[n].report) continue;
            for (auto const& gpu : nodes_[n].report->gpus) {
                if (gpu.uuid.empty()) continue;
                auto const [first, is_new] = by_gpu.try_emplace(gpu.uuid, static_cast<int>(n));
                if (is_new || first->second == static_cast<int>(n)) continue;
                at_ = static_cast<int>(n);
                bad(fmt::format("is the same machine as {}: both have GPU {}", name_of(first->second), gpu.uuid),
                    "name each node once");
                break;
            }
        }
    }

    /// Blames a node that knows few of the others for a broken name service, and otherwise the owner of a name that most do not
    /// know.
    void check_names() {
        std::set<int> broken;
        std::map<int, std::vector<int>> unknown_to;  // whose name, and who does not know it
        int reports = 0;
        for (std::size_t n = 0; n < nodes_.size(); ++n) {
            if (!nodes_[n].report) continue;
            ++reports;
            auto const others = others_unknown_to(static_cast<int>(n));
            if (nodes_.size() > 3 && 2 * others.size() > nodes_.size() - 1) {
                broken.insert(static_cast<int>(n));
                at_ = static_cast<int>(n);
                bad(fmt::format("cannot resolve the names of {} of the {} other nodes, such as {}", others.size(),
                                nodes_.size() - 1, name_of(*others.begin())),
                    "check its name service (/etc/hosts, /etc/resolv.conf)");
                continue;
            }
            for (int const other : others) unknown_to[other].push_back(static_cast<int>(n));
        }
        int const able = reports - static_cast<int>(broken.size());
        for (auto const& [whose, by] : unknown_to) {
            int const others = able - (nodes_[static_cast<std::size_t>(whose)].report && !broken.contains(whose) ? 1 : 0);
            if (2 * static_cast<int>(by.size()) > others) {
                std::vector<std::string> names;
                for (int const n : by) names.push_back(name_of(n));
                at_ = whose;
                bad("its name does not resolve on " + list_some(names, "nodes"),
                    "add it to the name service or /etc/hosts there");
                continue;
            }
            for (int const n : by) {
                at_ = n;
                bad("cannot resolve " + name_of(whose), "check its name service (/etc/hosts, /etc/resolv.conf)");
            }
        }
    }

    std::set<int> others_unknown_to(int which) {
        if (by_name_.empty())
            for (std::size_t n = 0; n < nodes_.size(); ++n)
                for (auto const name : {without_user(nodes_[n].name), std::string_view(nodes_[n].address)})
                    by_name_.emplace(name, static_cast<int>(n));
        std::set<int> others;
        for (auto const& [name, fault] : nodes_[static_cast<std::size_t>(which)].report->unresolved)
            if (auto const node = by_name_.find(name); node != by_name_.end() && node->second != which)
                others.insert(node->second);
        return others;
    }

    static bool is_finished(node_report const& r, std::string_view what) {
        return std::ranges::find(r.unfinished, what) == r.unfinished.end();
    }

    std::string const& name_of(int node) const { return nodes_[static_cast<std::size_t>(node)].name; }

    std::vector<probed_node> const& nodes_;
    node_limits const& wanted_;
    std::vector<node_finding> found_;
    std::map<std::string, int, std::less<>> by_name_;
    int at_ = 0;
};

}  // namespace

std::vector<node_finding> find_faults(std::vector<probed_node> const& nodes, node_limits const& wanted) {
    return fault_finder(nodes, wanted).all();
}

int first_good(std::vector<probed_node> const& nodes, node_limits const& wanted) {
    auto const findings = find_faults(nodes, wanted);
    for (int n = 0; n < static_cast<int>(nodes.size()); ++n)
        if (!is_bad(findings, n)) return n;
    return -1;
}

bool is_bad(std::vector<node_finding> const& findings, int node) noexcept {
    return std::ranges::any_of(findings, [&](node_finding const& f) { return f.node == node && f.how == severity::error; });
}

std::vector<std::string> describe_findings(std::vector<node_finding> const& findings, std::vector<probed_node> const& nodes,
                                           severity which) {
    std::vector<std::pair<std::pair<std::string, std::string>, std::vector<std::string>>> groups;
    for (auto const& f : findings) {
        if (f.how != which) continue;
        std::pair const key{f.what, f.advice};
        auto group = std::ranges::find_if(groups, [&](auto const& g) { return g.first == key; });
        if (group == groups.end()) group = groups.insert(groups.end(), {key, {}});
        group->second.push_back(nodes[static_cast<std::size_t>(f.node)].name);
    }
    std::vector<std::string> lines;
    for (auto const& [text, names] : std::span(groups).first(std::min(groups.size(), most_lines)))
        lines.push_back(
            fmt::format("{}: {}{}{}", list_some(names, "nodes"), text.first, text.second.empty() ? "" : "; ", text.second));
    if (groups.size() > most_lines)
        lines.push_back(
            fmt::format("and {} more findings; muster doctor --allocation --json has each", groups.size() - most_lines));
    return lines;
}

}  // namespace muster
