// Reads a Slurm job from its variables and one question to scontrol, which takes precedence. Works in a batch script, a salloc
// shell (which has no GPU variables at all, and may run on a login node), inside a step, in an array and in a heterogeneous job.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"

namespace muster {

namespace {

constexpr std::int64_t first_special_step = 0xffff'fff0;  ///< above it: batch, interactive, extern; not a user's step

/// Checks that the number fits the list: otherwise somebody changed one of them, and ranks would wait for nodes without ranks.
void check_number_of(std::vector<std::string> const& hosts, slurm_component const& part, std::string_view list) {
    auto const said = part.variables.get_int(part.name("SLURM_JOB_NUM_NODES"));
    if (!said || *said == static_cast<int>(hosts.size()) || part.variables.has("SLURM_STEP_NODELIST")) return;
    throw_error(
        errc::placement,
        "job {} (slurm): {}={}, but {}={} names {}; set both to the nodes to be used, or choose among the job's nodes with -H",
        part.variables.get_or("SLURM_JOB_ID", "?"), part.name("SLURM_JOB_NUM_NODES"), *said, part.name(list),
        part.get(list).value_or(""), hosts.size());
}

std::vector<std::string> hosts_of(slurm_component const& part) {
    for (auto const* base : {"SLURM_JOB_NODELIST", "SLURM_NODELIST"})
        if (auto const list = part.get(base); list && !list->empty()) {
            auto hosts = expand_hostlist(*list, part.name(base));
            if (hosts.empty()) continue;
            check_number_of(hosts, part, base);
            return hosts;
        }
    throw_error(
        errc::parse,
        "job {} (slurm): {} is not set, so its nodes are not known; start muster from the job's own script or shell, or give -H",
        part.variables.get_or("SLURM_JOB_ID", "?"), part.name("SLURM_JOB_NODELIST"));
}

std::vector<int> counts_of(slurm_component const& part, std::string_view base, std::size_t nodes) {
    auto const text = part.get(base);
    return text ? expand_counts(*text, nodes, part.name(base)) : std::vector<int>();
}

/// Says what the user requested, if the variables are those of this job.
struct asked_shape {
    bool tasks = false;  ///< a number of tasks, of the job or of each node
    int cpus_per_task = 1;
};

/// sbatch and salloc set these only for a job that requests them; otherwise the variables come from the job, if any, that
/// submitted this one.
asked_shape shape_of(slurm_component const& part, std::vector<int> const& tasks, slurm_job const& job) {
    asked_shape asked;
    auto const number = [&](std::string_view base) { return part.variables.get_int(part.name(base)); };
    auto const all = number("SLURM_NTASKS"), each = number("SLURM_NTASKS_PER_NODE");
    asked.tasks = (all && *all == std::accumulate(tasks.begin(), tasks.end(), std::int64_t{0})) ||
                  (each && std::ranges::all_of(tasks, [&](int n) { return n == *each; }));
    // Slurm's record describes the first component.
    asked.cpus_per_task =
        (part.suffix.empty() ? job.cpus_per_task : std::nullopt).value_or(number("SLURM_CPUS_PER_TASK").value_or(1));
    return asked;
}

/// Returns the tasks if the user asked for tasks, otherwise the ranks for which there are CPUs.
int slots_of(asked_shape const& asked, std::optional<int> tasks, std::optional<int> cpus) {
    if (tasks && asked.tasks) return std::max(*tasks, 1);
    if (!cpus) return std::max(tasks.value_or(1), 1);
    return std::max(*cpus / std::max(asked.cpus_per_task, 1), 1);
}

/// Returns whether muster itself runs in a step other than the job's script or interactive shell.
bool inside_step(environment const& variables) {
    auto const id = variables.get("SLURM_STEP_ID");
    if (!id || !variables.has("SLURM_STEP_NODELIST")) return false;
    auto const number = parse_integer(*id);
    return number && *number >= 0 && *number < first_special_step;
}

/// Returns the nodes of all components in order; a node of several components appears once, with the sum of its shares. Inside a
/// step SLURM_TASKS_PER_NODE describes the step's nodes, not these.
std::vector<node> job_nodes(environment const& variables, bool step, slurm_job const& job) {
    std::vector<node> nodes;
    std::map<std::string, std::size_t> places;
    for (auto const& part : slurm_components(variables)) {
        auto const hosts = hosts_of(part);
        auto tasks = step ? std::vector<int>() : counts_of(part, "SLURM_TASKS_PER_NODE", hosts.size());
        // An outer job's SLURM_NTASKS_PER_NODE changes sbatch's count of this job's tasks (25.05), in this variable only.
        bool const whole_job = part.suffix.empty();
        if (whole_job && job.tasks && *job.tasks != std::accumulate(tasks.begin(), tasks.end(), 0)) tasks.clear();
        auto const cpus = counts_of(part, "SLURM_JOB_CPUS_PER_NODE", hosts.size());
        auto const asked = shape_of(part, tasks, job);
        for (std::size_t i = 0; i < hosts.size(); ++i) {
            std::optional<int> const own_tasks = tasks.empty() ? std::nullopt : std::optional(tasks[i]);
            std::optional<int> const own_cpus = cpus.empty() ? std::nullopt : std::optional(cpus[i]);
            node n{hosts[i], hosts[i], slots_of(asked, own_tasks, own_cpus), std::nullopt, own_cpus};
            auto const [place, is_new] = places.try_emplace(hosts[i], nodes.size());
            if (is_new) {
                nodes.push_back(std::move(n));
                continue;
            }
            auto& known = nodes[place->second];
            known.slots += n.slots;
            if (n.cpus) known.cpus = known.cpus.value_or(0) + *n.cpus;
        }
    }
    return nodes;
}

/// Returns only the step's nodes. A step with one task on each node starts others: its nodes take what the job has there.
std::vector<node> step_nodes(environment const& variables, std::vector<node> const& job) {
    auto const hosts = expand_hostlist(*variables.get("SLURM_STEP_NODELIST"), "SLURM_STEP_NODELIST");
    auto const tasks = counts_of({variables, ""}, "SLURM_STEP_TASKS_PER_NODE", hosts.size());
    bool const one_each = tasks.empty() || *std::ranges::max_element(tasks) <= 1;
    std::map<std::string_view, node const*> known;
    for (auto const& n : job) known.emplace(n.name, &n);
    std::vector<node> nodes;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
        auto const found = known.find(hosts[i]);
        node n = found == known.end() ? node{hosts[i], hosts[i], 1, std::nullopt, std::nullopt} : *found->second;
        n.slots = one_each ? std::max(n.cpus.value_or(1), 1) : std::max(tasks[i], 1);
        nodes.push_back(std::move(n));
    }
    return nodes;
}

/// Returns the GPUs of this node: SLURM_GPUS_ON_NODE, or the length of a list of them.
std::optional<int> gpus_here(environment const& variables, bool step) {
    if (auto const count = variables.get_int("SLURM_GPUS_ON_NODE")) return std::max(*count, 0);
    auto const list = variables.get(step ? "SLURM_STEP_GPUS" : "SLURM_JOB_GPUS");
    if (!list || list->empty()) return std::nullopt;
    return static_cast<int>(split(*list, ',').size());
}

/// Returns the GPUs of all nodes from the variables alone; nothing if these cover only some nodes, or if two contradict each
/// other: one then comes from another job.
std::optional<int> gpus_everywhere(environment const& variables, bool step, std::size_t nodes) {
    if (count_slurm_components(variables) > 1) return std::nullopt;
    auto const here = gpus_here(variables, step);
    if (nodes == 1 && here) return here;
    auto const each = step ? std::nullopt : variables.get("SLURM_GPUS_PER_NODE");
    if (!each) return std::nullopt;
    int const count = count_gres_gpus(*each, "SLURM_GPUS_PER_NODE", true);
    return here.value_or(count) == count ? std::optional(count) : std::nullopt;
}

/// A step's tasks do not learn that GPUs were requested by task, but see the result: "4,1(x2)" tasks with so many GPUs each. Only
/// some nodes have SLURMD_TRES_BIND.
bool may_be_by_task(environment const& variables, int gpus_here, std::size_t nodes) {
    auto const text = variables.get_or("SLURM_STEP_TASKS_PER_NODE", "");
    if (text.find(',') == std::string::npos) return false;  // the same number everywhere
    if (variables.get_or("SLURMD_TRES_BIND", "").find("gpu:per_task") != std::string::npos) return true;
    auto const node = variables.get_int("SLURM_NODEID");
    if (!node || *node < 0 || static_cast<std::size_t>(*node) >= nodes) return true;
    auto const tasks = expand_counts(text, nodes, "SLURM_STEP_TASKS_PER_NODE");
    return gpus_here % std::max(tasks[static_cast<std::size_t>(*node)], 1) == 0;
}

/// Guesses without scontrol: a request by node (--gres) is the same for all nodes; one by job or by task may not be.
std::optional<int> guess_gpus(environment const& variables, bool step, std::size_t nodes) {
    auto const here = gpus_here(variables, step);
    if (!here || count_slurm_components(variables) > 1) return std::nullopt;
    if (auto const total = variables.get("SLURM_GPUS"))
        return count_gres_gpus(*total, "SLURM_GPUS", true) == *here * static_cast<int>(nodes) ? here : std::nullopt;
    if (step && may_be_by_task(variables, *here, nodes)) return std::nullopt;
    for (auto const* uneven : {"SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_GPUS_PER_SOCKET"})
        if (variables.has(uneven)) return std::nullopt;
    // Since 23.11 these stand for --gpus-per-task: "gres/gpu:1", later "gres/gpu=1", and "gres/gpu:per_task:1".
    if (variables.get_or("SLURM_TRES_PER_TASK", "").find("gres/gpu") != std::string::npos) return std::nullopt;
    if (variables.get_or("SLURM_TRES_BIND", "").find("gpu:per_task") != std::string::npos) return std::nullopt;
    return here;
}

/// A job shrinks when it loses a node (--no-kill) or when its user gives nodes back, but its variables stay the same.
void leave_out_given_back(std::vector<node>& nodes, slurm_job const& job) try {
    auto const present = expand_hostlist(job.nodes, "scontrol show job");
    auto const is_gone = [&](node const& n) { return std::ranges::find(present, n.name) == present.end(); };
    if (present.size() < nodes.size() && !std::ranges::all_of(nodes, is_gone)) std::erase_if(nodes, is_gone);
} catch (parse_error const&) {
}

slurm_job ask_scontrol(scheduler_sources const& sources, std::string const& asked, std::string const& id, bool tell) {
    auto const question = slurm_words(slurm_ask::job_in_detail, {asked});
    auto const answer = sources.run_command(question);
    if (answer.exit_status != 0) return {};
    auto job = parse_scontrol_job(answer.out, id);
    if (!job.found && tell) tell_of_no_answer(sources, question, "its answer has nothing of this job");
    // No GPU at all: the job has none, or this Slurm does not count GPUs, and then only the nodes can tell.
    if (!job.asked_gpus && std::ranges::all_of(job.gpus, [](auto const& g) { return g.second == 0; }) &&
        !knows_gpus(sources.run_command(slurm_words(slurm_ask::config)).out))
        job.gpus.clear();
    return job;
}

/// Asks for Slurm's own record. The variables cannot replace it: sbatch and salloc pass on those of the job that calls them, and
/// set only what the new job requests.
slurm_job ask_scontrol(scheduler_sources const& sources, std::string const& job_id) {
    auto const& variables = sources.variables;
    auto const id = count_slurm_components(variables) > 1 ? variables.get_or("SLURM_JOB_ID_HET_GROUP_0", job_id) : job_id;
    // A whole array answers to the number of its last task, so name the task. It may belong to another array.
    if (auto const task = variables.get("SLURM_ARRAY_TASK_ID"))
        if (auto const array = variables.get("SLURM_ARRAY_JOB_ID"))
            if (auto job = ask_scontrol(sources, fmt::format("{}_{}", *array, *task), id, false); job.found) return job;
    return ask_scontrol(sources, id, id, true);
}

void set_gpus(allocation& given, environment const& variables, slurm_job const& job, bool step) {
    auto const count = given.nodes.size();
    auto const told = gpus_everywhere(variables, step, count);
    auto const guess = told || job.found ? told : guess_gpus(variables, step, count);
    for (auto& n : given.nodes) {
        auto const found = job.gpus.find(n.name);
        n.gpus = found != job.gpus.end() ? std::optional(found->second) : guess;
    }
    // A step may have fewer of this node's GPUs than the job.
    auto const here = step ? gpus_here(variables, true) : std::nullopt;
    auto const name = variables.get("SLURMD_NODENAME");
    if (here && name)
        for (auto& n : given.nodes)
            if (n.name == *name) n.gpus = job.gpus.contains(n.name) ? std::min(*here, n.gpus.value_or(*here)) : here;
}

}  // namespace

std::optional<std::string> slurm_unavailable(scheduler_sources const& sources, allocation_choice const&) {
    if (sources.variables.has("SLURM_JOB_ID")) return std::nullopt;
    return "SLURM_JOB_ID is not set";
}

allocation read_slurm(scheduler_sources const& sources, allocation_choice const&) {
    auto const& variables = sources.variables;
    allocation given;
    given.scheduler = scheduler_kind::slurm;
    given.job_id = variables.get_or("SLURM_JOB_ID", "");
    given.cluster = variables.get_or("SLURM_CLUSTER_NAME", "");
    given.fixed = true;
    bool const step = inside_step(variables);
    auto const job = ask_scontrol(sources, given.job_id);
    if (!job.ended_as.empty())  // e.g. a tmux session that outlived it
        sources.tell(
            fmt::format("job {} (slurm) has ended ({}), and this shell still has its variables; start muster in a job that runs, "
                        "or unset SLURM_JOB_ID",
                        given.job_id, job.ended_as));
    given.nodes = job_nodes(variables, step, job);
    if (step) given.nodes = step_nodes(variables, given.nodes);
    if (!step && !job.nodes.empty() && count_slurm_components(variables) == 1) leave_out_given_back(given.nodes, job);
    given.ends_at = job.ends_at;
    if (auto const end = parse_integer(variables.get_or("SLURM_JOB_END_TIME", "")); end && !job.found)
        given.ends_at = from_epoch(*end);
    given.restarts = job.restarts.value_or(variables.get_int("SLURM_RESTART_COUNT").value_or(0));
    set_gpus(given, variables, job, step);
    given.corrections = slurm_corrections(variables, job, step);
    return given;
}

}  // namespace muster
