// A site: the rules and hardware of a computing centre, read from one TOML file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/units.hpp"
#include "jobscripts/script_request.hpp"
#include "launch/settings/setting.hpp"

namespace muster {

struct toml_document;

/// Bounds on a job, both ends included.
struct queue_limits {
    int min_nodes = 1;
    std::optional<int> max_nodes;
    std::optional<duration> min_walltime;
    std::optional<duration> max_walltime;

    /// Whether both are there; else nobody can say that a job would fit.
    bool are_known() const noexcept { return max_nodes && max_walltime; }
    bool operator==(queue_limits const&) const = default;
};

/// A queue behind a routing queue.
struct queue_route {
    std::string name;
    queue_limits limits;

    bool operator==(queue_route const&) const = default;
};

struct site_queue {
    std::string name;
    std::string note;
    queue_limits limits;
    bool select_gpus = false;              ///< PBS: select counts GPUs of one node, not nodes
    std::vector<int> gpu_counts;           ///< the only numbers of GPUs that it takes; empty: any
    std::vector<queue_route> routes;       ///< if there are any, a job must fit one of them
    std::optional<int> gpus, cores, cpus;  ///< of its nodes, where they are not those of [node]
    std::vector<std::string> accounts;     ///< that may use it; empty: all
    std::optional<int> max_gpu_nodes;      ///< how many of its nodes have GPUs, where not all have

    bool operator==(site_queue const&) const = default;
};

/// The shape of one node; what the site file does not say is empty.
struct site_node {
    std::optional<int> count;  ///< how many there are
    std::optional<int> gpus;
    std::string gpu_model;
    std::optional<int> cores;           ///< physical ones
    std::optional<int> cpus;            ///< hardware threads
    std::vector<std::string> gpu_cpus;  ///< by GPU index: the hardware threads near it, as in "0-7,32-39"
    std::vector<int> gpu_numa;          ///< by GPU index: its NUMA node
    std::vector<int> nearest_gpu;       ///< by local rank, where the ranks fill the cores from 0 upwards
    std::vector<int> nic_gpu;           ///< by network card: the GPU nearest to it
    std::string topology;               ///< the machine that muster plan shows (--topology), if it has not the site's own name

    bool operator==(site_node const&) const = default;
};

/// What a job script's directives must or may say.
struct site_header {
    bool account_required = false;
    std::string account_hint;
    bool queue_required = false;
    std::string default_queue;
    bool queue_is_qos = false;  ///< Slurm: a quality of service, not a partition
    gpu_request gpus_by = gpu_request::gpus_per_node;
    std::string constraint;
    bool whole_nodes = false;
    std::string chunk;
    std::string place;
    std::string filesystems;
    std::string attributes;
    std::vector<std::string> directives;
    std::optional<int> cpus_per_gpu;  ///< hardware threads to ask for; nothing: an equal share of the node's
    bool login_shell = false;

    bool operator==(site_header const&) const = default;
};

/// Where facts are from, and when they were looked up (YYYY-MM-DD).
struct site_fact {
    std::string source;
    std::string date;

    bool operator==(site_fact const&) const = default;
};

struct site {
    std::string file;  ///< what it was read from; empty: no file
    std::string name;
    std::string description;
    script_kind scheduler = script_kind::slurm;
    std::string source;                                ///< where the facts are from
    std::string source_date;                           ///< YYYY-MM-DD
    std::map<std::string, site_fact> section_sources;  ///< of sections whose facts are from elsewhere, by their names
    std::vector<std::string> unknown;                  ///< what could not be confirmed, and is therefore not in the file
    bool decommissioned = false;                       ///< the machine is no longer there
    site_node node;
    site_header header;
    std::vector<site_queue> queues;  ///< empty: the site file knows nothing about queues
    std::vector<std::string> modules;
    std::vector<std::string> setup;                          ///< shell lines
    std::vector<std::string> modules_multi_node;             ///< besides, in jobs of several nodes; can be left out
    std::vector<std::string> setup_multi_node;               ///< the same
    std::string container_runtime;                           ///< apptainer, singularity or pyxis; empty: not known
    std::optional<std::vector<std::string>> container_args;  ///< words for it; nothing: not known
    std::string scratch;     ///< a folder that nodes share, for large files; may hold $NAME for the reader; empty: not known
    std::string node_local;  ///< a folder of each node
    std::vector<std::pair<std::string, std::string>> environment;  ///< in every job
    std::vector<std::pair<std::string, std::string>>
        environment_multi_node;          ///< besides, in jobs of several nodes; can be left out
    std::vector<file_setting> settings;  ///< what holds at this site unless the user says otherwise

    bool operator==(site const&) const = default;
};

/// The site in `text`. Pure. Every key is checked: an unknown one, a wrong type, a value out of range or against another one, a
/// missing or a second one is a parse_error (errc::config) with `origin`, line and caret.
site parse_site(std::string_view text, std::string_view origin);

/// The same of a document that is read already.
site parse_site(toml_document const& document);

/// The site as jobs of that queue find it: with the queue's own nodes, which its name then says. Pure.
site with_nodes_of_queue(site where, std::string const& queue);

/// Whether jobs there can ask for GPUs, as its file says; nothing where it does not. Pure.
std::optional<bool> has_gpus(site const& where) noexcept;

/// The folder that this program is installed in: PREFIX of PREFIX/bin/muster. Throws errc::system.
std::filesystem::path installed_root();

/// Folders of site files that did not come with this program: $MUSTER_SITE_PATH (divided by colons), the user's ($XDG_CONFIG_HOME or
/// ~/.config, then /muster/sites), the machine's (/etc/muster/sites), the installation's (PREFIX/etc/muster/sites). They need not exist.
std::vector<std::filesystem::path> own_site_folders(environment const& env);

/// Folders that may hold site files, first one first: own_site_folders, the one installed with this program, the one this program was built from. They need not exist.
std::vector<std::filesystem::path> site_search_path(environment const& env);

/// The file of the site of that name in the first of `folders` that has it; a name with a slash or ending in ".toml" is a file. Throws
/// errc::usage if no site has the name, with the nearest ones and where it was looked for.
std::filesystem::path find_site_file(std::string const& name_or_path, std::vector<std::filesystem::path> const& folders);

/// The site in that file. Throws errc::usage as well if there is no such file; errc::config if it is not right or not named like its site.
site load_site(std::string const& name_or_path, std::vector<std::filesystem::path> const& folders);

/// The template that `named` (--template) means: with a slash or ending in ".mustache" a file, else NAME.mustache in the first of
/// `folders` that has it. Without a name the one beside the site's file that is called like the site, if there is one; else "", the
/// built-in one. Throws errc::usage for a name that none of the folders has.
std::string find_template(site const& where, std::string const& named, std::vector<std::filesystem::path> const& folders);

struct site_entry {
    std::string name;
    std::filesystem::path path;
    std::string description;
    site known;           ///< what the file says
    std::string problem;  ///< why the file cannot be used; empty if it can

    bool operator==(site_entry const&) const = default;
};

/// Every site of `folders` in order of name; where two files have one name, the one that load_site takes. Does not throw for a
/// file that is not right: see `problem`.
std::vector<site_entry> list_sites(std::vector<std::filesystem::path> const& folders);

// The faults of a site file: finds all of them in one reading.

/// Each fault of the text, in its order, as errors show them: ORIGIN:LINE:COLUMN, what, the line and a caret. Empty: no fault.
/// What follows from a reported fault is not reported. After a fault of TOML itself nothing else can be read. Pure.
std::vector<std::string> site_faults(std::string_view text, std::string_view origin);

/// Whether a text is meant as a site file and not as a settings file: it has tables or keys that only site files have.
bool looks_like_site(std::string_view text);

}  // namespace muster
