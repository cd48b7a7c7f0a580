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
    int gpus = 0;          ///< also the number of ranks; 0: `ranks` without GPUs
    int ranks = 0;         ///< without GPUs; both 0: the largest of `sweep`; both given, by --once: GPUs if the site has them
    bool has_gpus = true;  ///< whether the site has them if its file does not say
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
    std::vector<std::string> sbatch;  ///< directives for Slurm only
    std::vector<std::string> qsub;    ///< directives for PBS only
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
    std::string early_signal;  ///< "USR1@120"; empty: a default signal if one is needed
    std::optional<int> saved_code;
    std::string must_grow;
    std::vector<std::pair<std::string, std::string>> stage_in;
    std::string artifacts;
    duration artifacts_every{600};
    bool once = false;          ///< the program is not a rank: it starts muster run itself
    std::string muster;         ///< empty: the path of this program
    std::string template_file;  ///< empty: the built-in one
    std::vector<std::string> run_words;
    int spares = 0;               ///< for the run in the job: nodes, or places on its one node, in addition to those of its ranks
    bool outlives_nodes = false;  ///< the run has spares, or goes on with fewer ranks after the loss of a node
    std::vector<std::string> command;
    std::map<std::string, std::string> places;  ///< "muster.toml:3", for each setting that no option gives

    bool operator==(script_options const&) const = default;
};

/// Returns the options in `given`, which were read for a command with the options of `muster script`; the program may be missing.
/// Throws errc::usage for any other missing option, and for a value that does not parse.
script_options make_script_options(settings_result const& given);

/// Rethrows `fault`; if that begins with an option's name, adds which line of a file, or variable, sets it.
[[noreturn]] void throw_at_place(error const& fault, std::map<std::string, std::string> const& places);

/// Returns the words by which `muster run` in the job gets what the command line or a job file sets for it. Pure.
std::vector<std::string> run_words(settings_result const& given);

/// Holds what the script is made from, and what the user should know about it.
struct script_plan {
    script_request request;
    std::vector<std::string> notes;

    bool operator==(script_plan const&) const = default;
};

/// Passes options of muster run to the runs of a job: as options or, if the program starts them itself, as variables. Pure.
void hand_to_runs(script_request& request, std::vector<std::string> const& words);

/// Returns how many nodes the job takes at that site, including spare ones; nothing if it does not fit there. Pure.
std::optional<int> nodes_at(site const& where, script_options const& options);

/// Returns "1 node", "2 nodes". Pure.
std::string nodes_text(int nodes);

/// Uses request.queue, nodes, ranks_per_node and walltime; sets the queue's `select`. Reports an unknown limit in `notes` and
/// does not apply it. Pure. Throws errc::usage, with the queues that would fit, for a queue that is missing or unknown to a site
/// that names its queues, and for a job outside of its limits (unless options.check_limits is false).
void plan_queue(site const& where, script_request& request, script_options const& options, std::vector<std::string>& notes);

/// Uses request.kind and job_name; sets `each`, `array` and the names of the jobs. Throws errc::usage for options that exclude
/// each other. Pure.
void plan_each(script_request& request, script_options const& options);
/// Throws parse_error for a {name} in the job's words without values, and for values that nothing uses. Pure.
void check_each_words(script_request const& request, script_options const& options);
/// Throws errc::usage if two jobs of the sweep would write to one folder. Pure.
void refuse_common_folder(script_request const& request, std::string const& folder);
/// Returns a note, for a job without an array, about a word "{lr}" or "--lr={lr}", which the program may want unchanged. Pure.
std::optional<std::string> note_braces(std::vector<std::string> const& command);

/// Pure. Throws errc::usage, with the possible changes, if the GPUs do not fill nodes of that site, if the job is outside the
/// queue's limits (naming the queues it fits), or if an account or queue that the site requires is missing.
script_plan plan_script(site const& where, script_options const& options);

}  // namespace muster
