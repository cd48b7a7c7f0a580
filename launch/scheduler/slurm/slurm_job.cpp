#include "launch/scheduler/slurm/slurm_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/cpuset.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/scheduler/read_allocation.hpp"

namespace muster {

namespace {

using time_point = std::chrono::system_clock::time_point;

constexpr std::string_view origin = "scontrol show job";
constexpr int most_gpus = 1'000'000;
constexpr std::array<std::string_view, 9> final_states{"COMPLETED",     "CANCELLED", "FAILED",    "TIMEOUT", "NODE_FAIL",
                                                       "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE"};

/// Returns the record's words, separated by blanks: a value with blanks (a job's name) becomes several words, which does no harm.
std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    std::size_t at = 0;
    while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
        auto const end = std::min(line.find_first_of(" \t\r", at), line.size());
        words.push_back(line.substr(at, end - at));
        at = end;
    }
    return words;
}

std::optional<std::string_view> value_of(std::string_view word, std::string_view key) {
    if (!word.starts_with(key) || word.size() <= key.size() || word[key.size()] != '=') return std::nullopt;
    return word.substr(key.size() + 1);
}

/// Returns the value of the first word with that key: a job's name comes after its id, so it cannot imitate one.
std::optional<std::string_view> first_value(std::vector<std::string_view> const& words, std::string_view key) {
    for (auto const word : words)
        if (auto const value = value_of(word, key)) return value;
    return std::nullopt;
}

std::optional<time_point> parse_time(std::string_view text) {
    if (auto const seconds = parse_integer(text)) return from_epoch(*seconds);
    return text.size() == 19 ? parse_local_time(std::string(text), "%Y-%m-%dT%H:%M:%S") : std::nullopt;
}

std::optional<int> small_number(std::optional<std::string_view> text) {
    auto const number = parse_integer(text.value_or(""));
    return number && *number >= 0 && *number <= most_gpus ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Reads "Nodes=n[1-2] CPU_IDs=0-3 Mem=0 GRES=gpu:4(IDX:0-3)": four consecutive words, which no job's name contains by accident.
void read_nodes(std::vector<std::string_view> const& words, slurm_job& job) {
    for (std::size_t i = 0; i + 3 < words.size(); ++i) {
        auto const nodes = value_of(words[i], "Nodes");
        auto const gres = value_of(words[i + 3], "GRES");
        if (!nodes || !gres) continue;
        if (!value_of(words[i + 1], "CPU_IDs") || !value_of(words[i + 2], "Mem")) continue;
        try {
            int const gpus = count_gres_gpus(*gres, origin);
            auto const ids = gres_gpu_ids(*gres);
            for (auto& name : expand_hostlist(*nodes, origin)) {
                if (!ids.empty()) {
                    auto& known = job.gpu_ids[name];
                    known.insert(known.end(), ids.begin(), ids.end());
                }
                int& sum = job.gpus[std::move(name)];
                sum = std::min(sum + gpus, most_gpus);
            }
        } catch (error const&) {  // an unknown form: the nodes themselves will tell
        }
        if (job.gpus.size() > max_hosts) throw_error(errc::parse, "{}: more than {} nodes", origin, max_hosts);
    }
}

bool asks_for_gpus(std::string_view gres) {
    try {
        return count_gres_gpus(gres, origin) > 0;
    } catch (error const&) {
        return gres.find("gpu") != std::string_view::npos;
    }
}

/// Returns the value of a line "GresTypes               = gpu,nic".
std::optional<std::string_view> configured(std::string_view config, std::string_view name) {
    for (auto const line : split(config, '\n')) {
        auto const equals = line.find('=');
        if (equals != std::string_view::npos && trim(line.substr(0, equals)) == name) return trim(line.substr(equals + 1));
    }
    return std::nullopt;
}

}  // namespace

int count_gres_gpus(std::string_view text, std::string_view from, bool only_gpus) {
    std::int64_t sum = 0;
    std::size_t start = 0;
    while (start < text.size()) {
        std::size_t end = start;
        for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end)
            depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
        auto item = std::string(text.substr(start, std::min(text.find('(', start), end) - start));
        std::ranges::replace(item, '=', ':');  // "gres/gpu=4", the form of TRES since 24.05
        auto fields = split(item, ':');
        if (fields.front() == "gres") fields.erase(fields.begin());
        bool const is_gpu = !fields.empty() && (fields.front() == "gpu" || fields.front() == "gres/gpu");
        if (only_gpus || is_gpu) {
            auto const last = fields.empty() ? std::string_view{} : fields.back();
            bool const numeric = !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
            auto const count = numeric ? parse_integer(last) : std::optional<std::int64_t>(last.empty() ? 0 : 1);
            if (!count || *count > most_gpus || last.empty()) throw parse_error(from, text, start, "no number of GPUs");
            sum += *count;
        }
        start = end + 1;
    }
    if (sum > most_gpus) throw parse_error(from, text, 0, fmt::format("more than {} GPUs", most_gpus));
    return static_cast<int>(sum);
}

std::vector<int> gres_gpu_ids(std::string_view text) {
    constexpr std::string_view sign = "(IDX:";
    std::vector<int> ids;
    std::size_t start = 0;
    while (start < text.size()) {
        auto const open = text.find('(', start);
        auto const close = text.find(')', open);
        if (close == std::string_view::npos) break;
        auto const name = text.substr(start, open - start);
        bool const is_gpu = name.starts_with("gpu:") || name.starts_with("gres:gpu:") || name.starts_with("gres/gpu:");
        auto const list = text.substr(open, close - open);
        start = close + 1;
        if (start < text.size() && text[start] == ',') ++start;
        if (!is_gpu || !list.starts_with(sign)) continue;
        try {
            auto const own = cpuset::from_list(list.substr(sign.size())).cpus;
            ids.insert(ids.end(), own.begin(), own.end());
        } catch (parse_error const&) {
            return {};
        }
    }
    std::ranges::sort(ids);
    return ids;
}

slurm_job parse_scontrol_job(std::string_view text, std::string_view id) {
    slurm_job job;
    for (auto const line : split(text, '\n')) {
        auto const words = words_of(line);
        if (words.empty()) continue;
        auto const own = value_of(words.front(), "JobId");
        if (!own || (*own != id && first_value(words, "HetJobId") != id)) continue;
        job.found = true;
        if (auto const asked = first_value(words, "JOB_GRES")) {
            if (asks_for_gpus(*asked)) job.asked_gpus = true;
            for (auto const part : {"shard", "mps"}) job.shares_gpus = job.shares_gpus || asked->find(part) != asked->npos;
        }
        if (auto const end = first_value(words, "EndTime"))
            if (auto const when = parse_time(*end)) job.ends_at = std::min(job.ends_at.value_or(*when), *when);
        if (*own == id) {
            if (auto const array = first_value(words, "ArrayJobId")) job.array_job = *array;
            if (auto const state = first_value(words, "JobState").value_or("");
                std::ranges::find(final_states, state) != final_states.end())
                job.ended_as = state;
            if (auto const nodes = first_value(words, "NodeList").value_or(""); nodes != "(null)") job.nodes = nodes;
            if (auto const nodes = first_value(words, "ExcNodeList").value_or(""); nodes != "(null)") job.excluded = nodes;
            job.restarts = small_number(first_value(words, "Restarts"));
            job.tasks = small_number(first_value(words, "NumTasks"));
            job.cpus_per_task = small_number(first_value(words, "CPUs/Task"));
        }
        read_nodes(words, job);
    }
    for (auto& [name, ids] : job.gpu_ids) std::ranges::sort(ids);
    return job;
}

bool knows_gpus(std::string_view config) {
    auto const types = split(configured(config, "GresTypes").value_or(""), ',');
    return std::ranges::find(types, "gpu") != types.end();
}

/// The plugin is "task/none" up to 23.02 and "(null)" later if nothing binds.
bool binds_tasks(std::string_view config) {
    auto const plugin = configured(config, "TaskPlugin");
    return plugin != "task/none" && plugin != "(null)" && plugin != "";
}

std::string slurm_cluster_name(std::string_view config) {
    auto const name = configured(config, "ClusterName").value_or("");
    return name == "(null)" ? std::string() : std::string(name);
}

std::optional<std::string> munge_socket(std::string_view config) {
    if (configured(config, "AuthType") != "auth/munge") return std::nullopt;
    constexpr std::string_view prefix = "socket=";
    for (auto const part : split(configured(config, "AuthInfo").value_or(""), ','))
        if (part.starts_with(prefix)) return std::string(part.substr(prefix.size()));
    return "";
}

std::string slurm_component::name(std::string_view base) const {
    return fmt::format("{}{}", base, suffix);
}

std::optional<std::string> slurm_component::get(std::string_view base) const {
    return variables.get(name(base));
}

int count_slurm_components(environment const& variables) {
    int const size = variables.get_int("SLURM_HET_SIZE").value_or(1);
    auto const job = variables.get("SLURM_JOB_ID");
    bool others = false;
    for (int i = 0; i < size; ++i) {
        auto const id = variables.get(fmt::format("SLURM_JOB_ID_HET_GROUP_{}", i));
        if (id && id == job) return size;
        others = others || id.has_value();
    }
    return others ? 1 : std::max(size, 1);
}

std::vector<slurm_component> slurm_components(environment const& variables) {
    int const size = count_slurm_components(variables);
    std::vector<slurm_component> all;
    for (int i = 0; size > 1 && i < size && variables.has(fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", i)); ++i)
        all.push_back({variables, fmt::format("_HET_GROUP_{}", i)});
    if (all.empty()) all.push_back({variables, ""});
    return all;
}

namespace {

/// slurmd sets these in a job with GPUs, and sbatch and salloc in one that requests GPUs.
constexpr std::array of_gpus{"SLURM_JOB_GPUS",       "SLURM_STEP_GPUS",     "SLURM_GPUS_ON_NODE",   "CUDA_VISIBLE_DEVICES",
                             "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",  "ZE_AFFINITY_MASK",     "SLURM_GPUS",
                             "SLURM_GPUS_PER_NODE",  "SLURM_GPUS_PER_TASK", "SLURM_GPUS_PER_SOCKET"};

/// Returns whether Slurm has set any of them: a user's CUDA_VISIBLE_DEVICES alone is only a wish.
bool slurm_told_gpus(environment const& variables) {
    return variables.has("SLURM_JOB_GPUS") || variables.has("SLURM_STEP_GPUS") || variables.has("SLURM_GPUS_ON_NODE");
}

}  // namespace

std::vector<std::pair<std::string, std::optional<std::string>>> slurm_corrections(environment const& variables,
                                                                                  slurm_job const& job, bool step) {
    std::vector<std::pair<std::string, std::optional<std::string>>> corrections;
    auto const drop = [&](std::string const& name) { corrections.emplace_back(name, std::nullopt); };
    bool const others_components = variables.has("SLURM_HET_SIZE") && count_slurm_components(variables) == 1;
    bool const others_array = job.found && job.array_job != variables.get_or("SLURM_ARRAY_JOB_ID", job.array_job);
    for (auto const& [name, value] : variables)
        if ((others_components && (name.starts_with("SLURM_HET_") || name.find("_HET_GROUP_") != name.npos)) ||
            (others_array && name.starts_with("SLURM_ARRAY_")))
            drop(name);
    if (job.found && job.restarts == 0 && variables.has("SLURM_RESTART_COUNT")) drop("SLURM_RESTART_COUNT");

    auto const node = variables.get_or("SLURMD_NODENAME", "");
    auto const here = job.gpus.find(node);
    bool const has_none = here == job.gpus.end() ? !job.gpus.empty() : here->second == 0;
    if (step || node.empty() || !job.found || job.shares_gpus || !has_none || !slurm_told_gpus(variables)) return corrections;
    for (auto const* name : of_gpus)
        if (variables.has(name)) drop(name);
    return corrections;
}

}  // namespace muster
