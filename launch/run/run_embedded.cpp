#include "launch/run/run_embedded.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/process/files.hpp"
#include "base/process/process.hpp"
#include "base/process/process_starter.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/placement/bind_ranks.hpp"
#include "launch/placement/this_node.hpp"
#include "launch/ranks/rank_name.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/ranks/start_limits.hpp"
#include "launch/record/run_record.hpp"
#include "launch/record/sample_record.hpp"
#include "launch/run/local_group.hpp"
#include "launch/run/run_supervisor.hpp"
#include "launch/run/stdin_forwarder.hpp"
#include "launch/samples/node_sampler.hpp"
#include "launch/system/network.hpp"
#include "launch/system/open_files.hpp"
#include "pmix/library/open_library.hpp"

namespace muster {

namespace {

child_rank make_rank(run_context const& run, identity const& who, binding const& place, std::string const& output_dir,
                     int spare = -1) {
    auto const how = output_format(run.options, who, run.generation(), spare);
    auto files = make_output_files(output_dir, who, spare);
    return {.who = who,
            .planned = who.rank,
            .spare = spare,
            .place = place,
            .out = rank_stream(STDOUT_FILENO, how, std::move(files.out)),
            .err = rank_stream(STDERR_FILENO, how, std::move(files.err))};
}

pmix::job describe_job(local_placement const& where, run_preparation const& prepared, std::string const& session_dir,
                       std::string const& program) {
    pmix::job job;
    job.nspace = prepared.ranks.front().nspace;
    job.host = where.machine.host;
    job.world_size = where.map.world_size();
    job.session_dir = session_dir;
    job.executable = program;
    job.usable_cores = static_cast<int>(where.machine.cores.size());
    if (where.machine.cpu_quota) job.usable_cores = std::min(job.usable_cores, *where.machine.cpu_quota);
    for (auto const& b : where.bindings) job.cpusets.push_back(b.cores.to_list());
    return job;
}

/// Returns what is requested on this node.
placement_request share_of_node(run_options const& options, local_placement const& where) {
    auto const& counts = where.map.ranks_per_node;
    auto const here = std::ranges::find_if(counts, [](int n) { return n > 0; });
    return with_share(options.place, where.given, where.given.nodes.at(static_cast<std::size_t>(here - counts.begin())));
}

/// Returns the file for what ranks commit; empty: no file holds it.
std::string kept_file(run_context const& run) {
    for (std::size_t node = 0; node < run.kept.files.size(); ++node)
        if (run.map.ranks_per_node[node] > 0) return run.kept.files[node];
    return run.kept.fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", ::getpid(), run.kept.fd);
}

/// Holds all that is the same for every rank.
struct rank_starter {
    run_context const& run;
    local_placement const& where;
    run_preparation const& prepared;
    std::string const& program;
    rendezvous const& point;
    rlimit open_files;
    bool counts_waits;

    /// A spare's numbers follow those of the world.
    identity who_at(int rank) const {
        auto const size = static_cast<int>(prepared.ranks.size());
        auto who = prepared.ranks[static_cast<std::size_t>(std::min(rank, size - 1))];
        if (rank >= size) who.rank = who.local_rank = rank;
        return who;
    }
    binding const& place_at(int rank) const {
        auto const index = static_cast<std::size_t>(rank), size = where.bindings.size();
        return index < size ? where.bindings[index] : where.spares.at(index - size);
    }
    /// Returns the place on a slot that has come later, as if it had been the last of the original slots.
    binding later_place(int rank) const {
        if (rank < static_cast<int>(where.bindings.size() + where.spares.size())) return place_at(rank);
        return bind_ranks(where.machine, share_of_node(run.options, where), rank + 1).back();
    }

    environment variables_of(int rank) const {
        return variables_of(rank, place_at(rank),
                            rank < static_cast<int>(run.life.now.members.size())
                                ? run.life.now.members[static_cast<std::size_t>(rank)].at.host
                                : "");
    }
    environment variables_of(int rank, binding const& place, std::string const& host) const {
        environment own = prepared.variables;
        complete_variables(
            own, {who_at(rank), place, point, run.options.exports, run.options.command, prepared.python, run.session_dir});
        if (auto const file = kept_file(run); !file.empty())
            own.set(elastic::kept_state_variable, fmt::format("{}:{}", run.kept.part_of(rank), file));
        if (run.options.discovery.given() && !host.empty()) own.set("HOROVOD_HOSTNAME", host);  // the script's name for it
        return own;
    }

    child_rank start(int rank, int stdin_fd, pmix::server& pmix_server, pmix::pmi1_server& pmi1_server,
                     process_starter& processes) {
        auto const index = static_cast<std::size_t>(rank);
        auto started = make_rank(run, prepared.ranks[index], where.bindings[index], run.options.output_dir);
        auto own = variables_of(rank);
        pmix_server.set_client_environment(rank, own);
        pmi1_server.set_client_environment(rank, own);
        begin(started, own, stdin_fd, processes);
        return started;
    }

    /// The spare is unknown to MPI.
    child_rank start_spare(int rank, int number, process_starter& processes, std::string const& host = {}) const {
        auto const place = later_place(rank);
        auto started = make_rank(run, who_at(rank), place, run.options.output_dir, number);
        auto own = variables_of(rank, place, host);
        begin(started, own, -1, processes);
        return started;
    }

    /// Starts a rank of a later generation, in the place of a lost rank or a spare, or in an additional one.
    child_rank start_later(int rank, int number, std::string const& host) const {
        process_starter processes(1);
        auto started = start_spare(rank, number, processes, host);
        processes.finish();
        return started;
    }

    void begin(child_rank& started, environment& own, int stdin_fd, process_starter& processes) const {
        if (run.options.is_elastic()) started.events = member_socket::make();
        int const events = started.events.child_fd();
        if (events >= 0) own.set(elastic::events_variable, elastic::events_value(events));
        if (events >= 0 && started.who.node_count > 1) own.set(elastic::over_nodes_variable, "1");  // several names of this host
        if (counts_waits) started.waits = rank_waits::make();
        if (auto const page = started.waits.path(); !page.empty()) own.set(wait_page_variable, page);
        // Kernels with autogroup share the processors among sessions. Each rank gets its own session: ranks in a terminal's or
        // script's one session would together get the time of one process on a busy machine. Ranks that share processors stay in
        // one session, in which they yield to each other some 10 times as fast.
        started.pid = processes.begin({.path = program,
                                       .arguments = &run.options.command,
                                       .variables = &own,
                                       .working_dir = prepared.working_dir,
                                       .stdin_fd = stdin_fd,
                                       .stdout_fd = started.out.child_fd(),
                                       .stderr_fd = started.err.child_fd(),
                                       .kept_fd = events,
                                       .cores = started.place.cores,
                                       .own_session = prepared.ranks.size() <= where.machine.allowed().cpus.size(),
                                       .open_files = open_files});
    }
};

rendezvous make_rendezvous(held_ports const& ports) {
    auto const& numbers = ports.numbers();
    rendezvous point{"127.0.0.1", numbers[0], numbers[1], {}};
    for (auto port = numbers.begin() + 2; port != numbers.end(); ++port)
        point.workers.push_back(fmt::format("127.0.0.1:{}", *port));
    return point;
}

/// Returns the MASTER_PORT that the ranks get: muster's, or that of -x.
int find_master_port(run_options const& options, rendezvous const& point) {
    constexpr std::string_view name = "MASTER_PORT=";
    int port = point.master_port;
    for (std::string_view const assignment : options.exports)
        if (assignment.starts_with(name)) port = static_cast<int>(parse_integer(assignment.substr(name.size())).value_or(0));
    return port;
}

std::vector<gpu> own_gpus_to_sample(run_options const& options, local_placement const& where) {
    auto const has_ranks = [&](std::size_t node) { return where.map.ranks_per_node[node] > 0; };
    std::size_t here = 0;
    while (here < where.map.ranks_per_node.size() && !has_ranks(here)) ++here;
    if (here >= where.given.nodes.size()) return {};
    auto const place = with_share(options.place, where.given, where.given.nodes[here]);
    auto places = where.bindings;  // with those of processes that may become ranks
    places.insert(places.end(), where.spares.begin(), where.spares.end());
    return gpus_to_sample(where.machine, places, is_gpu_share_unclear(where.machine, place));
}

/// Returns whether there are descriptors for a page of waits of each rank.
bool check_limits(run_options const& options, int world_size) {
    if (options.print_env) return false;
    int const files = options.output_dir.empty() ? 2 : 4;
    auto const limits = read_start_limits();
    if (auto const fault = limit_fault(world_size, files, limits)) throw error(errc::unavailable, *fault);
    return options.sample > duration(0) && !limit_fault(world_size, files + 1, limits);
}

/// Prints what would run as a shell would write it: the cores of each rank, then its command.
void print_commands(run_options const& options, local_placement const& where) {
    fmt::print("# muster itself starts {} on {}; variables: --print-env RANK\n",
               count_of_ranks(static_cast<std::size_t>(where.map.world_size())), where.machine.host);
    auto const print = [&](std::vector<binding> const& places, std::string_view what) {
        for (std::size_t r = 0; r < places.size(); ++r) {
            auto const& cores = places[r].cores;
            fmt::print("{}{}  # {} {}\n", cores.empty() ? "" : fmt::format("taskset -c {} ", cores.to_list()),
                       shell_join(options.command), what, r);
        }
    };
    print(where.bindings, "rank");
    print(where.spares, "spare");
}

}  // namespace

int run_embedded(run_context const& run, run_preparation const& prepared, local_placement const& where,
                 hwloc_handle const& hwloc) {
    auto const& options = run.options;
    int const size = where.map.world_size(), spares = static_cast<int>(where.spares.size());
    if (options.dry_run) {
        print_commands(options, where);
        return 0;
    }
    auto const& working_dir = prepared.working_dir;
    if (!working_dir.empty() && !is_folder(working_dir))
        throw_error(errc::not_found, "--wd {}: there is no such directory; give one that exists", options.working_dir);
    auto variables = prepared.variables;
    add_python_folders(variables, prepared.python);
    auto const program = find_program(options.command.front(), variables, working_dir);
    auto const open_files = raise_open_files();
    pmix::open_library();  // reports a missing library before anything starts
    end_phase("program found, ranks placed");
    auto job = describe_job(where, prepared, run.session_dir, program);
    job.topology = [&hwloc]() -> void* {
        load_here(hwloc.get());
        return hwloc.get();
    };
    // This comes first, since it blocks the signals that it reads: a thread started before could take them away.
    run_supervisor watch(run);
    local_group ranks(run, watch.loop(), watch.writer(), watch.events());
    bool const counts_waits = check_limits(options, size + spares);
    ranks.note_memory_kills();
    pmix::pmi1_server pmi1_server(job);
    std::optional<held_ports> ports(std::in_place, 2 + (prepared.lists_workers ? size : 0));
    auto const point = make_rendezvous(*ports);
    std::optional<process_starter> processes(std::in_place, size + spares);
    rank_starter starter{run, where, prepared, program, point, open_files, counts_waits};
    pmix::server pmix_server(job, pmix::library_start::at_first_call);
    stdin_forwarder input(watch.loop());
    ports.reset();
    if (options.print_env) {
        fmt::print("{}# besides, what PMIx and PMI tell each rank of its server here\n",
                   starter.variables_of(*options.print_env).shell_lines());
        return 0;
    }
    try {
        for (int rank = 0; rank < size; ++rank)
            ranks.add(starter.start(rank, rank == 0 ? input.child_fd() : -1, pmix_server, pmi1_server, *processes));
        for (int number = 0; number < spares; ++number) ranks.add(starter.start_spare(size + number, number, *processes));
        processes->finish();
    } catch (program_error const& e) {
        ranks.start_failed(e.what(), e.exit_status());
    } catch (error const& e) {
        ranks.start_failed(e.what(), exit_code(e.code()));
    }
    processes.reset();
    end_phase("ranks started");
    input.child_started();
    if (options.is_elastic())
        ranks.go_on_in_place(
            [&starter](int rank, int number, std::string const& host) { return starter.start_later(rank, number, host); });
    sample_record samples(
        watch.loop(), run, ranks.known().job_id, [&ranks](bool ended_too) { return ranks.present_ranks(ended_too); },
        [&](std::string const& note) { watch.events().say(note); });
    node_sampler const sampler(
        watch.loop(), {pause_of_samples(run), true, options.network_interface, {}, own_gpus_to_sample(options, where)},
        [&ranks] { return ranks.ranks_to_sample(); }, [&](node_sample const& look) { samples.note(where.machine.host, look); });
    ranks.serve(pmix_server, pmi1_server, find_master_port(options, point));
    int const code = watch.run(ranks);
    end_phase("ranks ended");
    pmix_server.leave();
    return code;
}

}  // namespace muster
