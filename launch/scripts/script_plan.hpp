// The plan of a job script: checks what the user asks for against what a site allows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "jobscripts/script_request.hpp"
#include "launch/settings/resolve_settings.hpp"
#include "launch/site/site.hpp"

namespace muster {

/// The options of `muster script`.
struct script_options {
    bool help = false;
    bool help_all = false;
    std::string site;
    int gpus = 0;          ///< and ranks; 0: `ranks` without GPUs
    int ranks = 0;         ///< without GPUs; both 0: the largest of `sweep`; both given, by --once: GPUs where the site has them
    bool has_gpus = true;  ///< whether the site has them where its file does not say
    std::optional<duration> walltime;
    std::string account;
    std::string queue;
    std::string queue_word;  ///< the option that names it: "-p", "--qos"
    std::string job_name = "muster";
    std::optional<int> gpus_per_node;
    std::optional<int> cpus_per_gpu;
    std::optional<int> ranks_per_node;
    std::optional<int> cpus_per_rank;  ///< cores
    std::string constraint;
    std::string filesystems;
    std::string memory;               ///< "64G", or "all"
    std::vector<std::string> sbatch;  ///< directives, for Slurm alone
    std::vector<std::string> qsub;    ///< directives, for PBS alone
    bool network_environment = true;
    bool check_limits = true;
    std::vector<std::string> modules;
    std::vector<std::string> setup;  ///< shell lines
    std::string venv;
    std::string conda;
    std::vector<std::pair<std::string, std::string>> environment;
    std::string container;
    std::string container_runtime;                           ///< empty: the site's
    std::optional<std::vector<std::string>> container_args;  ///< nothing: the site's
    std::string array;
    std::vector<int> sweep;
    std::vector<std::string> each;  ///< "lr=0.1,0.01"
    std::vector<std::string> after;
    std::string after_kind = "ok";
    int chain = 0;
    bool requeue = false;
    std::string early_signal;  ///< "USR1@120"; empty: where it is needed
    std::optional<int> saved_code;
    std::string must_grow;
    std::vector<std::pair<std::string, std::string>> stage_in;
    std::string artifacts;
    duration artifacts_every{600};
    bool once = false;          ///< the program is no rank: it starts muster run itself
    std::string muster;         ///< empty: this program's own path
    std::string template_file;  ///< empty: the one built in
    std::vector<std::string> run_words;
    int spares = 0;               ///< of the run in the job: nodes, or places on its one node, beside those of its ranks
    bool outlives_nodes = false;  ///< the run has spares, or goes on with fewer ranks, where a node is lost
    std::vector<std::string> command;
    std::map<std::string, std::string> places;  ///< "muster.toml:3", of each setting that no option gives

    bool operator==(script_options const&) const = default;
};

/// The options in `given`, which were read for a command that takes those of `muster script`; the program may be missing. Throws
/// errc::usage for another one that is missing, and for a value that does not parse.
script_options make_script_options(settings_result const& given);

/// Throws `fault` again; one that begins with the name of an option says first which line of a file, or variable, gives it.
[[noreturn]] void throw_at_place(error const& fault, std::map<std::string, std::string> const& places);

/// The words by which `muster run` in the job gets what the command line or a job file sets for it. Pure.
std::vector<std::string> run_words(settings_result const& given);

/// What the script is made from, and what the user should know about it.
struct script_plan {
    script_request request;
    std::vector<std::string> notes;

    bool operator==(script_plan const&) const = default;
};

/// Hands options of muster run to the runs of a job: as options or, where the program starts them itself, as variables. Pure.
void hand_to_runs(script_request& request, std::vector<std::string> const& words);

/// How many nodes the job takes at that site, its spare ones included; nothing where it has no place there. Pure.
std::optional<int> nodes_at(site const& where, script_options const& options);

/// "1 node", "2 nodes". Pure.
std::string nodes_text(int nodes);

/// Takes request.queue, nodes, ranks_per_node and walltime; sets what the queue says of `select`. A limit that is not known is reported
/// in `notes`, never taken for one that holds. Pure. Throws errc::usage, with the queues that would fit, for a queue that is missing
/// or unknown to a site that names its queues, and for a job outside of its limits (unless options.check_limits is false).
void plan_queue(site const& where, script_request& request, script_options const& options, std::vector<std::string>& notes);

/// Takes request.kind and job_name; sets `each`, `array` and the names of the jobs. Throws errc::usage for options that do not go together. Pure.
void plan_each(script_request& request, script_options const& options);
/// Throws parse_error for a {name} in the job's words that has no values, and for values that nothing uses. Pure.
void check_each_words(script_request const& request, script_options const& options);
/// Throws errc::usage if two jobs of the sweep would write to one folder. Pure.
void refuse_common_folder(script_request const& request, std::string const& folder);
/// Of a job without an array: what to say of a word "{lr}" or "--lr={lr}", which the program may want as it is. Pure.
std::optional<std::string> note_braces(std::vector<std::string> const& command);

/// Pure. Throws errc::usage, with the ways out, if the GPUs do not fill nodes of that site, if the job is outside the queue's
/// limits (naming the queues it fits), or if the site wants an account or a queue and there is none.
script_plan plan_script(site const& where, script_options const& options);

}  // namespace muster
