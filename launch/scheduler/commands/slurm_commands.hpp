// The table of every Slurm command that muster runs: its words, the forms of its answer by version, and what reads that.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace muster {

enum class slurm_ask {
    srun_version,
    mpi_plugins,
    step,
    config,
    job_in_detail,
    job_record,
    job_for_people,
    job_records,
    node_records,
    jobs_of_user,
    jobs_by_number,
    job_numbers,
    partitions,
    partition_records,
    accounts,
    submit,
    test_submit,
    allocate,
    cancel,
    requeue,
    exclude_nodes,
};

struct slurm_command {
    slurm_ask what;
    std::string_view words;  ///< as they are run; each {} stands for a value
    std::string_view
        reader;  ///< the function that reads the answer and the file that declares it, "parse_squeue launch/…hpp"; or nobody
    std::string_view forms;  ///< of the answer, by version
};

/// Returns all of them; a unit test finds a command that is run anywhere and is not here. What mpirun and mpiexec themselves run
/// (srun for their daemons) is not included.
std::span<slurm_command const> slurm_commands() noexcept;

/// Returns the words of a command, with `values` in place of {}; options may follow. Throws errc::internal for another number of
/// values.
std::vector<std::string> slurm_words(slurm_ask what, std::vector<std::string> const& values = {});

/// Returns the program's name: "squeue".
std::string slurm_program(slurm_ask what);

/// Removes the variables by which a user gives squeue, sinfo and scancel other columns, or fewer jobs and nodes, than muster
/// needs (SQUEUE_FORMAT, SQUEUE_PARTITION, SINFO_FORMAT, SLURM_TIME_FORMAT, SCANCEL_STATE …). Pure.
environment without_slurm_views(environment variables);

}  // namespace muster
