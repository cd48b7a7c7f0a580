#include "launch/scheduler/commands/slurm_commands.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "base/throw_error.hpp"

namespace muster {

namespace {

// Uses columns and records rather than --json: that needs a plugin (serializer/json) which some sites have not built, and its
// fields have changed more often than the columns (a job's state: a word up to 23.02, a list since 23.11; its exit code: a
// number, then an object, then one with other members). Versions: the output of 22.05.8, 23.11.11, 25.05.8, 25.11.7 and 26.05.3,
// and the sources of those between them. Where no difference is mentioned, all are the same.
constexpr slurm_command commands[]{
    {slurm_ask::srun_version, "srun --version", "find_version launch/engine/mpi_family.hpp",
     "\"slurm 25.05.8\", \"slurm-wlm 22.05.8\" (Debian), \"slurm 26.05.0-0rc1\""},
    {slurm_ask::mpi_plugins, "srun --mpi=list", "parse_mpi_list launch/engine/engines.hpp",
     "up to 21.08 \"srun: MPI types are...\" and \"srun: pmix_v3\" lines on standard error; from 22.05 on \"MPI plugin types "
     "are...\", a "
     "name a line, and \"specific pmix plugin versions available: pmix_v4,pmix_v5\", on standard output"},
    {slurm_ask::step, "srun --job-name={} --mpi={}", "",
     "the ranks' own; from 23.11 on it refuses --nodes with --distribution=arbitrary, and takes SLURM_CPUS_PER_TASK and "
     "SLURM_TRES_BIND "
     "for orders (see unset_srun_orders)"},
    {slurm_ask::config, "scontrol show config",
     "knows_gpus binds_tasks slurm_cluster_name munge_socket launch/scheduler/slurm/slurm_job.hpp read_slurm_facts "
     "launch/site_tools/cluster_facts.hpp",
     "\"Name   = value\" lines; where there is nothing \"(null)\", and of TaskPlugin up to 23.02 \"task/none\"; AuthType is "
     "auth/munge or, "
     "from 23.11 on, auth/slurm"},
    {slurm_ask::job_in_detail, "env SLURM_TIME_FORMAT=%s scontrol -d -o show job {}",
     "parse_scontrol_job launch/scheduler/slurm/slurm_job.hpp",
     "a record a line, \"JobId=7 JobName=…\", from 26.05 on with SLUID= behind JobId; of each group of nodes \"Nodes=n[1-2] "
     "CPU_IDs=0-3 Mem=0 "
     "GRES=gpu:4(IDX:0-3)\"; JOB_GRES=gpu:8; EndTime in seconds, or Unknown"},
    {slurm_ask::job_record, "scontrol -o show job {}", "parse_job_end parse_failed_nodes launch/watch/job_end.hpp number_of_sluid launch/jobs/queue/queued_job.hpp",
     "as above; from 26.05 on it takes a SLUID in place of the number; \"JobState=COMPLETING Reason=TimeLimit\" stand together; after them \"FailedNode=n1\" (not in 22.05); EXPEDITING "
     "from 25.11 on; of an array's last task a line for each task"},
    {slurm_ask::job_for_people, "scontrol show job {}", "", "shown as it is"},
    {slurm_ask::job_records, "scontrol -o show job", "find_output_sharers launch/jobs/queue/output_sharers.hpp",
     "as above, of all jobs that Slurm remembers; \"No jobs in the system\" where there are none"},
    {slurm_ask::node_records, "scontrol -o show node {}", "parse_down_nodes launch/watch/job_end.hpp",
     "\"NodeName=n1 … State=DOWN*+DRAIN\": flags with + behind a word that may end in one of *~#!%$@^-; from 24.11 on further "
     "flags (BLOCKED, "
     "EXTERNAL); a node without power is IDLE+COMPLETING+NOT_RESPONDING at first"},
    {slurm_ask::jobs_of_user, "squeue -h -u {} -O {}", "parse_squeue launch/jobs/queue/queued_job.hpp",
     "the columns that are asked for, each with the | behind it; exit_code is a wait status (\"768\") up to 22.05, code and "
     "signal (\"3:0\", "
     "\"0:9\") from 23.02 on, and empty where Slurm has none; EXPEDITING from 25.11 on"},
    {slurm_ask::jobs_by_number, "squeue -h -t all -j {} -O {}", "parse_squeue launch/jobs/queue/queued_job.hpp",
     "as above; a number that is not known: \"slurm_load_jobs error: Invalid job id specified\", code 1, on standard error"},
    {slurm_ask::job_numbers, "squeue -h -u {} -o %i", "completion_command launch/commands/commands.hpp",
     "a number a line: \"12\", \"12_3\", \"12_[0-2%1]\", \"12+1\""},
    {slurm_ask::partitions, "sinfo -h -e -o {}", "read_slurm_facts launch/site_tools/cluster_facts.hpp",
     "the columns that are asked for with | between them: \"gpu*|2-00:00:00|1-16|20|128|2|64|1|gpu:a100:4(S:0-1)|n[1-20]\"; "
     "\"infinite\", "
     "\"n/a\" and \"(null)\" for what there is not, \"8+\" for the least of several, \"2K\" for 2048"},
    {slurm_ask::partition_records, "scontrol -o show partition", "read_partitions launch/site_tools/cluster_facts.hpp",
     "a record a line, \"PartitionName=main AllowGroups=ALL AllowAccounts=phys,bio … RootOnly=NO … State=UP …\"; State is UP, "
     "DOWN, DRAIN or INACTIVE"},
    {slurm_ask::accounts, "sacctmgr -n -P show associations user={} format=account,qos",
     "find_cluster_facts launch/site_tools/cluster_facts.hpp",
     "an account and its qualities of service a line (\"a|high,normal\"); code 1 where there is no database"},
    {slurm_ask::submit, "sbatch --parsable", "parse_job_number parse_job_cluster launch/jobs/queue/queued_job.hpp",
     "\"12\", with several clusters \"12;cluster\"; a site's own lines before it"},
    {slurm_ask::test_submit, "sbatch --test-only {}", "",
     "on standard error \"sbatch: Job 2 to start at … using 8 processors on nodes …\" (25.05: \"a using\"), shown from \" to "
     "start at \" on; else why not"},
    {slurm_ask::allocate, "salloc", "", "shown as it is: muster alloc becomes salloc"},
    {slurm_ask::cancel, "scancel {}", "", "nothing, or why not on standard error"},
    {slurm_ask::requeue, "scontrol requeue {}", "", "nothing, or why not on standard error"},
    {slurm_ask::exclude_nodes, "scontrol update JobId={} ExcNodeList={}", "",
     "nothing, or why not on standard error; of a pending job only; ExcNodeList+= is not in 22.05"},
};

slurm_command const& row_of(slurm_ask what) {
    auto const row = std::find_if(std::begin(commands), std::end(commands), [&](auto const& c) { return c.what == what; });
    if (row == std::end(commands)) throw error(errc::internal, "a command of Slurm is not in the table of them");
    return *row;
}

}  // namespace

std::span<slurm_command const> slurm_commands() noexcept {
    return commands;
}

std::vector<std::string> slurm_words(slurm_ask what, std::vector<std::string> const& values) {
    auto const& row = row_of(what);
    std::vector<std::string> words;
    auto value = values.begin();
    for (auto const part : split(row.words, ' ')) {
        std::string word(part);
        if (auto const place = word.find("{}"); place != std::string::npos && value != values.end())
            word.replace(place, 2, *value++);
        words.push_back(std::move(word));
    }
    auto const places = static_cast<std::size_t>(std::ranges::count(row.words, '{'));
    if (places != values.size())
        throw_error(errc::internal, "'{}' takes {} values, and {} are given", row.words, places, values.size());
    return words;
}

std::string slurm_program(slurm_ask what) {
    auto const words = split(row_of(what).words, ' ');
    auto const is_setting = [](auto word) { return word == "env" || word.find('=') != std::string_view::npos; };
    return std::string(*std::find_if_not(words.begin(), words.end(), is_setting));
}

environment without_slurm_views(environment variables) {
    // The user chooses where the jobs are, and which of the clusters has them.
    environment kept;
    for (auto const* const name :
         {"SQUEUE_ALL", "SQUEUE_FEDERATION", "SQUEUE_LOCAL", "SQUEUE_SIBLING", "SINFO_ALL", "SINFO_FEDERATION", "SINFO_LOCAL"})
        if (auto const value = variables.get(name)) kept.set(name, *value);
    variables.unset_prefix("SQUEUE_");
    variables.unset_prefix("SINFO_");
    variables.unset_prefix("SCANCEL_");
    variables.unset("SLURM_TIME_FORMAT");
    for (auto const& [name, value] : kept) variables.set(name, value);
    return variables;
}

}  // namespace muster
