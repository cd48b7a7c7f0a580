// `muster submit`: checks a job, writes its script, submits it and keeps a record of it.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/command/print_note.hpp"
#include "base/letters.hpp"
#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/trust/foreign_json.hpp"
#include "base/trust/open_output_file.hpp"
#include "base/version.hpp"
#include "launch/commands/commands.hpp"
#include "launch/help/help.hpp"
#include "launch/jobs/check_program.hpp"
#include "launch/jobs/job_commands.hpp"
#include "launch/jobs/job_plan.hpp"
#include "launch/jobs/job_record.hpp"
#include "launch/jobs/queue/ask_scheduler.hpp"
#include "launch/jobs/queue/output_sharers.hpp"
#include "launch/jobs/queue/queued_job.hpp"
#include "launch/jobs/queue/unmet_dependency.hpp"
#include "launch/jobs/submission_variables.hpp"
#include "launch/record/run_record.hpp"
#include "launch/samples/remarks/odd_nodes.hpp"
#include "launch/scheduler/commands/slurm_commands.hpp"
#include "launch/scheduler/read_allocation.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

namespace {

constexpr std::chrono::milliseconds submit_limit{120'000};  ///< a busy slurmctld makes sbatch try for a minute

std::string local_time(char const* form) {
    auto const now = std::time(nullptr);
    return fmt::format(fmt::runtime(fmt::format("{{:{}}}", form)), fmt::localtime(now));
}

/// Replaces characters of a job's name that a file's name may not have.
std::string file_name_of(std::string const& job_name) {
    std::string name;
    for (char const c : job_name) name += is_alphanumeric(c) || c == '-' || c == '_' ? c : '_';
    return name.empty() ? "job" : name;
}

std::string first_script_path(job_plan const& plan) {
    return fmt::format("{}/{}-{}-{}.sh", plan.files_folder, file_name_of(plan.request.job_name), local_time("%Y%m%d-%H%M%S"),
                       ::getpid());
}

void write_script(job_plan const& plan, std::string const& path) {
    output_folder const folder(plan.files_folder, "submit from a folder of your own");
    // The script's variables may hold secrets (--env).
    auto const file = folder.open_file(fs::path(path).filename().string(), {}, 0700);
    write_all(file.get(), plan.script, path, "free space, or submit from another folder");
}

/// Writes the cluster whose jobs' files lie in the folder, unless the folder has a cluster.
void mark_cluster(job_plan const& plan) try {
    if (plan.cluster.empty() || fs::path(plan.files_folder).filename() != runs_folder) return;
    output_folder const folder(plan.files_folder, "submit from a folder of your own");
    auto const name = folder.open_file(cluster_file, {}, 0644);
    write_all(name.get(), plan.cluster + "\n", fmt::format("{}/{}", plan.files_folder, cluster_file));
} catch (error const& e) {
    print_note("that this folder is of jobs of {} is not kept ({})", plan.cluster, e.what());
}

std::string said_by(command_output const& answer) {
    auto const text = trim(answer.err.empty() ? answer.out : answer.err);
    return text.empty() ? fmt::format("code {}", answer.exit_status) : std::string(text);
}

/// Prints sbatch's answer on whether and when the job could run.
void test_only(job_plan const& plan, std::string const& path, environment const& variables, bool quiet) {
    if (plan.request.kind != script_kind::slurm) return;
    auto const answer = run_captured(slurm_words(slurm_ask::test_submit, {path}), variables, submit_limit);
    if (answer.exit_status != 0) {
        std::error_code fault;
        fs::remove(path, fault);
        auto const unmet = unmet_dependency(plan.request, variables);
        throw_error(errc::usage, "sbatch --test-only refuses the job: {}{}", said_by(answer),
                    unmet.empty() ? "; change what is asked for, or give --no-check to submit it all the same" : unmet);
    }
    // The number in that line is that of the test, not the job's.
    auto const at = answer.err.find(" to start at ");
    if (!quiet && at != std::string::npos)
        fmt::print(stderr, "muster: if nothing changes, it is{}\n", trim(answer.err).substr(at));
}

/// Returns the value that directives give an option of sbatch, which takes the last one; nothing if none does, or for another
/// scheduler.
std::optional<std::string> value_by_directive(script_request const& request, std::string_view long_name,
                                              std::string_view letter) {
    std::optional<std::string> value;
    if (request.kind != script_kind::slurm) return value;
    for (auto const& line : request.directives) {
        std::vector<std::string> const words = shell_split(line, "a directive");
        for (std::size_t i = 0; i < words.size(); ++i)
            for (auto const name : {long_name, letter}) {
                std::string_view const word = words[i];
                if (name.empty() || !word.starts_with(name)) continue;
                auto rest = word.substr(name.size());
                if (rest.empty() && i + 1 < words.size())
                    rest = words[++i];
                else if (name == long_name && !rest.starts_with('='))
                    continue;
                if (rest.starts_with('=')) rest.remove_prefix(1);
                value = rest;
                break;
            }
    }
    return value;
}

/// Returns the folder that a directive makes sbatch start the script in; empty: this process' folder.
std::string folder_by_directive(script_request const& request) {
    return value_by_directive(request, "--chdir", "-D").value_or("");
}

/// Throws errc::config for a setting of the run for which the job has too few or too many nodes: the run would end at once.
void refuse_other_shape(script_request const& request, settings_result const& given) {
    auto const refuse = [&](std::string const& name, int value) {
        throw_error(errc::config,
                    "{}: {} = {}, but the job gets {} with {} on each; leave {} out: nodes follow from gpus and gpus-per-node, "
                    "or from ranks and ranks-per-node",
                    given.get(name).where, name, value, nodes_text(request.nodes),
                    counted(request.ranks_per_node, "rank") +
                        (request.spare_places > 0 ? fmt::format(" and room for {} more", request.spare_places) : ""),
                    name);
    };
    auto const nodes = given.integer("nnodes"), slots = given.integer("slots-per-node");
    if (nodes && (request.once ? *nodes > request.nodes : *nodes != request.nodes)) refuse("nnodes", *nodes);
    if (slots && !request.once && *slots < request.ranks_per_node + request.spare_places) refuse("slots-per-node", *slots);
}

/// Returns the files that directives make Slurm write output to.
std::vector<std::string> output_files(script_request const& request) {
    std::vector<std::string> files;
    for (auto const& file : {value_by_directive(request, "--output", "-o"), value_by_directive(request, "--error", "-e")})
        if (file && std::ranges::find(files, *file) == files.end()) files.push_back(*file);
    return files;
}

/// A job of Slurm truncates its file, unless it appends; jobs that may start again do (jobscripts/templates/slurm.mustache).
void note_common_file(script_request const& request) {
    auto const mode = value_by_directive(request, "--open-mode", "");
    if (mode ? mode->starts_with('a') : request.requeue) return;
    for (auto const& file : output_files(request))
        if (file.find('%') == std::string::npos && file != "/dev/null")
            print_note("each job that writes to {} begins it anew; give each its own: {}", file,
                       (fs::path(file).parent_path() / with_own_name(file)).string());
}

bool is_below(fs::path const& path, fs::path const& folder) {
    auto const [rest, end] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    return rest == folder.end();
}

/// Makes the missing folders of such files if `makes` says so: Slurm 22.05 makes none (24.11 does), and a job that cannot write
/// its output ends at its start without a message. A folder that is not below this one may exist on the nodes only, so that one
/// is only reported.
void make_output_folders(script_request const& request, bool makes) {
    std::error_code fault;
    auto const here = fs::current_path(fault);
    for (auto const& file : output_files(request)) {
        auto const folder = fs::path(file).parent_path();
        auto const whole = (here / folder_by_directive(request) / folder).lexically_normal();
        if (folder.empty() || folder.string().find('%') != std::string::npos || is_folder(whole)) continue;
        if (!is_below(whole, here)) {
            fmt::print(
                stderr,
                "muster: note: the job's output is to go to {}, and there is no folder {} here: unless the nodes have it, or "
                "this Slurm makes it, the job ends at its start and leaves no output\n",
                file, whole.string());
            continue;
        }
        if (makes && !fs::create_directories(whole, fault) && fault)
            throw_error(errc::io, "the folder {} of the job's output {} cannot be made: {}; give another --output",
                        whole.string(), file, fault.message());
        fmt::print(stderr, "muster: note: {} the folder {} for the job's output {}\n", makes ? "made" : "submit makes",
                   whole.string(), file);
    }
}

/// Throws errc::usage for a program, a script, an image or data to stage that does not exist. It cannot see what a container
/// holds.
void check_files(script_request const& request, settings_result const& given, environment const& variables) {
    program_place where{
        .working_dir = (fs::path(folder_by_directive(request)) / given.text("wd")).string(),
        .loads_more = !request.modules.empty() || !request.setup.empty() || !request.venv.empty() || !request.conda.empty(),
        .changes_files = !given.list("setup").empty()};
    for (auto const& [from, to] : request.stage_in) where.staged_folders.push_back(to);
    if (given.text("container").empty())
        check_program(request.command, variables, where);
    else
        check_image(given.text("container"), where);
    where.working_dir = folder_by_directive(request);  // the folder of the script itself
    check_venv(request.venv, where);
    for (auto const& [from, to] : request.stage_in)
        if (!path_exists(from))
            throw_error(errc::usage, "--stage-in {}:{}: there is no {} here; check the name, or give --no-check", from, to, from);
}

void print_plan(job_plan const& plan) {
    fmt::print(stderr, "muster: job {} at {}: {}\n", plan.request.job_name, plan.site, describe(plan.request));
    for (auto const& note : plan.notes) print_note(note);
}

/// Names nodes that were at fault in late runs; the scheduler may give them again.
void note_odd_nodes(job_plan const& plan, environment const& variables) {
    constexpr std::size_t most_named = 3;
    auto const now = std::time(nullptr);
    auto nodes = recall_odd_nodes(variables, plan.cluster, now);
    if (nodes.size() > most_named) nodes.resize(most_named);
    std::vector<std::string> hosts;
    for (auto const& node : nodes) {
        print_note("{} {}", node.host, describe(node, now));
        hosts.push_back(node.host);
    }
    if (!hosts.empty() && plan.request.kind == script_kind::slurm)
        print_note("--sbatch --exclude={} leaves {} out", join(hosts, ","), hosts.size() == 1 ? "it" : "them");
}

/// Holds what has been submitted.
struct submitted_jobs {
    std::vector<std::string> ids;
    std::string script;   ///< where it is kept
    std::string cluster;  ///< the cluster that has them
};

ordered_json json_of(job_plan const& plan, submitted_jobs const& jobs) {
    auto const& id = jobs.ids.front();
    auto const to_all = [&](std::string_view command) {
        std::vector<std::string> words{"muster", std::string(command)};
        words.insert(words.end(), jobs.ids.begin(), jobs.ids.end());
        return words;
    };
    return ordered_json{{"schema", "muster.submit/1"},
                        {"id", id},
                        {"ids", jobs.ids},
                        {"scheduler", to_string(plan.request.kind)},
                        {"cluster", jobs.cluster},
                        {"site", plan.site},
                        {"name", plan.request.job_name},
                        {"script", jobs.script},
                        {"output", plan.output_of(id)},
                        {"run_folder", with_job_number(plan.run_folder, id)},
                        {"watch", to_all("watch")},
                        {"cancel", to_all("cancel")}};
}

int links_of(job_plan const& plan) {
    return std::max(1, plan.request.chain);
}

std::string kept_script_path(job_plan const& plan, std::string const& id) {
    return fmt::format("{}/{}.sh", plan.files_folder, id);
}

/// Returns the command that submits one job; `link` is its place in a chain, from 1, and `former` the job before it. sbatch gets
/// the place as a variable of its environment: --export=ALL,NAME=VALUE makes Slurm ask for the user's login environment on the
/// node (`su - user`) and, since 25.05, hold the job if that fails.
std::vector<std::string> link_words(job_plan const& plan, std::string const& path, int link, std::string const& former) {
    auto words = plan.submit;
    if (link > 1) {
        std::erase_if(words, [](auto const& word) {
            return word == "--hold" || word == "-h" || word == "--urgency=0";
        });  // it waits for the first
        auto const number = fmt::format("MUSTER_CHAIN_START={}", link);
        if (plan.request.kind == script_kind::slurm) {
            words.insert(words.begin(), {"env", number});
            words.insert(words.end(), {"--dependency=afterany:" + former, "--export=ALL"});
        } else if (plan.request.kind == script_kind::flux) {
            words.insert(words.end(), {"--dependency=afterany:" + former, "--env=" + number});
        } else {
            words.insert(words.end(), {"-W", "depend=afterany:" + former, "-v", number});
        }
    }
    words.push_back(path);
    return words;
}

/// Prints every action in order, and does none. In a chain ID1 stands for the first job's number.
void print_actions(job_plan const& plan, bool checks, bool json) {
    auto const path = first_script_path(plan);
    auto const kept = kept_script_path(plan, links_of(plan) > 1 ? "ID1" : "ID");
    auto const first = link_words(plan, path, 1, {});
    std::vector<std::vector<std::string>> further;
    for (int link = 2; link <= links_of(plan); ++link)
        further.push_back(link_words(plan, kept, link, fmt::format("ID{}", link - 1)));
    auto const test = slurm_words(slurm_ask::test_submit, {path});
    bool const tests = checks && plan.request.kind == script_kind::slurm;
    if (json) {
        auto actions = ordered_json::array();
        actions.push_back({{"action", "write"}, {"path", path}, {"text", plan.script}});
        if (tests) actions.push_back({{"action", "run"}, {"command", test}});
        actions.push_back({{"action", "run"}, {"command", first}});
        actions.push_back({{"action", "rename"}, {"path", path}, {"to", kept}});
        for (auto const& submit : further) actions.push_back({{"action", "run"}, {"command", submit}});
        actions.push_back({{"action", "record"}, {"run_folder", plan.run_folder}});
        fmt::print("{}\n", json_text(ordered_json{{"schema", "muster.submit-dry-run/1"}, {"actions", actions}}, 2));
        return;
    }
    int n = 0;
    fmt::print("# {}. write {}\n", ++n, path);
    for (auto const line : split(trim(plan.script), '\n')) fmt::print("    {}\n", line);
    if (tests) fmt::print("# {}. ask whether the job could run\n{}\n", ++n, shell_join(test));
    fmt::print("# {}. submit\n{}\n", ++n, shell_join(first));
    fmt::print("# {}. keep the script as {}, with the number of the job for {}\n", ++n, kept, further.empty() ? "ID" : "ID1");
    for (auto const& submit : further) fmt::print("# {}. submit\n{}\n", ++n, shell_join(submit));
    fmt::print("# {}. note for muster watch, logs, show and rerun that the run writes to {}\n", ++n, plan.run_folder);
}

/// Throws errc::usage while jobs of another chain with this name wait or run in this folder: both would keep their state in the
/// same files, and the end of one would end the other.
void refuse_same_chain(job_plan const& plan, environment const& variables) {
    if (plan.request.chain == 0) return;
    auto const& name = plan.request.job_name;
    std::vector<std::string> live;
    std::string first;
    for (auto const& job : list_jobs(find_queue(variables), {}, variables)) {
        auto const record = job.phase == job_phase::ended ? std::nullopt : find_job_record(job.id, variables);
        if (!record || record->name != name || record->working_dir != plan.working_dir) continue;
        if (read_text_file(record->script).find(".muster-chain/" + name) == std::string::npos) continue;
        if (live.empty()) first = fs::path(record->script).stem().string();         // keep_script gave it this name
        if (live.empty() || live.back() != record->id) live.push_back(record->id);  // an array has a row for each task
    }
    if (live.empty()) return;
    auto const jobs = join(live, " ");
    throw_error(errc::usage,
                "the chain '{}' of this folder, whose first job is {}, still has jobs that wait or run ({}), and two chains of "
                "one name would end each other; give this one another name by --job-name, or end that one by muster cancel {}",
                name, first, jobs, jobs);
}

/// A job's number, and the cluster that has it.
struct queued_number {
    std::string id, cluster;
};

queued_number submit_script(job_plan const& plan, std::vector<std::string> const& words, environment const& variables) {
    auto const& program = plan.submit.front();
    auto const& path = words.back();
    auto const answer = run_captured(words, variables, submit_limit);
    if (answer.exit_status != 0)
        throw_error(errc::usage, "{} refuses the job: {}{}; its script is {}", program, said_by(answer),
                    unmet_dependency(plan.request, variables), path);
    auto const id = parse_job_number(answer.out);
    if (!id)
        throw_error(errc::parse, "{} ended well, and printed no number of a job: '{}'; look for the job with muster jobs",
                    program, without_controls(trim(answer.out)));
    return {*id, parse_job_cluster(answer.out)};
}

std::string keep_script(job_plan const& plan, std::string const& path, std::string const& id) {
    auto const kept = kept_script_path(plan, id);
    std::error_code fault;
    fs::rename(path, kept, fault);
    return fault ? path : kept;
}

job_record make_record(job_plan const& plan, std::string const& id, std::string const& cluster, std::string const& script,
                       std::vector<std::string> const& args) {
    return {.id = id,
            .scheduler = std::string(to_string(plan.request.kind)),
            .cluster = cluster,
            .site = plan.site,
            .name = plan.request.job_name,
            .submitted_at = local_time("%Y-%m-%dT%H:%M:%S%z"),
            .submitted_on = short_host_name(),
            .version = std::string(version()),
            .working_dir = plan.working_dir,
            .script = script,
            .output = plan.output_of(id),
            .run_folder = plan.run_folder,
            .asked = describe(plan.request),
            .each = plan.request.each,
            .command = plan.request.command,
            .arguments = args};
}

/// Submits one job, or those of a chain, each after the former, and records each as soon as it is queued. If one is refused, the
/// user learns which jobs are queued and what to do.
submitted_jobs submit_links(job_plan const& plan, std::string const& path, std::vector<std::string> const& args,
                            environment const& variables) {
    submitted_jobs done{.script = path, .cluster = plan.cluster};
    int const links = links_of(plan);
    for (int link = 1; link <= links; ++link) {
        auto const words = link_words(plan, done.script, link, done.ids.empty() ? std::string() : done.ids.back());
        try {
            auto [id, cluster] = submit_script(plan, words, variables);
            done.ids.push_back(std::move(id));
            if (plan.request.kind == script_kind::slurm && !cluster.empty()) done.cluster = std::move(cluster);
        } catch (error const& e) {
            if (done.ids.empty()) throw;
            auto const queued = join(done.ids, " ");
            throw_error(e.code(),
                        "job {} of the {} of the chain: {}; queued and recorded are {}: cancel them by muster cancel {}, or "
                        "submit what is missing by {}",
                        link, links, e.what(), queued, queued, shell_join(words));
        }
        auto const& id = done.ids.back();
        if (link == 1) {
            done.script = keep_script(plan, path, id);
            mark_cluster(plan);
        }
        if (auto const why = write_job_record(make_record(plan, id, done.cluster, done.script, args), variables); !why.empty())
            print_note("no record of job {} is kept ({}), so muster logs and rerun do not find its files", id, why);
    }
    return done;
}

/// Explains how to submit a job script: `muster submit job.sh` is everybody's first try.
void refuse_job_script(std::vector<std::string> const& command, environment const& variables) {
    if (command.size() != 1) return;
    auto const text = read_text_file(command.front(), 16384);
    std::pair<std::string_view, std::string> const kinds[]{
        {"\n#SBATCH ", slurm_words(slurm_ask::submit, {}).front()}, {"\n#PBS ", "qsub"}, {"\n#FLUX: ", "flux batch"}};
    auto const refuse = [&](std::string const& words) {
        throw_error(errc::usage,
                    "{0} is a job script: submit it by `{1} {0}`; muster submit writes the script itself, for a program: muster "
                    "submit --gpus N --time T -- python3 train.py (--ranks N without GPUs); a script that itself starts muster "
                    "run goes with --once",
                    command.front(), words);
    };
    for (auto const& [mark, words] : kinds)
        if (text.find(mark) != std::string::npos) refuse(words);
    if (text.starts_with("#!") && text.find("\nmuster run ") != std::string::npos)
        refuse(prefers_pbs(variables) ? "qsub" : slurm_words(slurm_ask::submit, {}).front());
}

}  // namespace

int submit_command(std::vector<std::string> const& args, environment const& variables) {
    auto const given = resolve_settings("submit", args, real_settings(variables));
    if (print_help_if_asked("submit", given)) return 0;
    print_notes(given);
    if (given.command.empty())
        throw error(errc::usage,
                    "the program is missing; give it after --, as in: muster submit … -- python3 train.py, or as 'command' in a "
                    "job file");
    if (!given.flag("once")) refuse_job_script(given.command, variables);
    auto const plan = plan_submission(given, variables);
    bool const checks = given.flag("check"), json = given.flag("json");
    if (!given.flag("dry-run")) refuse_missing(plan.submit.front(), plan.site, variables);
    refuse_other_shape(plan.request, given);
    if (checks) {
        auto const braces =
            plan.request.array.empty() && plan.request.sweep.empty() ? note_braces(plan.request.command) : std::nullopt;
        if (braces) print_note(*braces);
        check_files(plan.request, given, variables);
        make_output_folders(plan.request, !given.flag("dry-run") && !given.flag("check-only"));
    }
    print_plan(plan);
    note_odd_nodes(plan, variables);
    note_common_file(plan.request);
    if (given.flag("dry-run")) {
        print_actions(plan, checks, json);
        return 0;
    }
    refuse_same_chain(plan, variables);
    if (checks) check_forgotten_jobs(plan.request, variables);
    auto const path = first_script_path(plan);
    write_script(plan, path);
    auto const of_job = submission_variables(variables);
    if (checks) test_only(plan, path, of_job, json);
    if (given.flag("check-only")) {
        std::error_code fault;
        fs::remove(path, fault);
        return 0;
    }
    auto const jobs = submit_links(plan, path, args, of_job);
    if (json) {
        fmt::print("{}\n", json_text(json_of(plan, jobs), 2));
        return 0;
    }
    for (auto const& link : jobs.ids) fmt::print("job {}\n", link);
    auto const all = join(jobs.ids, " ");
    fmt::print(stderr, "muster: follow it: muster watch {}; end it: muster cancel {}; its script: {}\n", all, all, jobs.script);
    return 0;
}

}  // namespace muster
