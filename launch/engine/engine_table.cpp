#include "launch/engine/engine_table.hpp"

#include <fmt/format.h>

#include <array>

#include "base/process/process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/engine/engines.hpp"
#include "launch/engine/mpi_family.hpp"

namespace muster {

namespace {

std::vector<std::string> nothing_to_cancel(std::string const&) {
    return {};
}

constexpr std::array table{
    engine_row{"srun", srun_unavailable, srun_command, srun_cancel},
    engine_row{"remote", remote_unavailable, remote_command_line, nothing_to_cancel},
    engine_row{"mpirun", mpirun_unavailable, mpirun_command, nothing_to_cancel},
    engine_row{"mpiexec", mpiexec_unavailable, mpiexec_command, nothing_to_cancel},
};

bool has_pals(scheduler_sources const& sources) {
    auto const mpiexec = find_mpiexec(sources);
    return mpiexec && mpiexec->from == mpiexec_program::maker::pals;
}

/// More hosts need a tree, since the engine remote contacts every host itself. Up to this number was measured (docs/measured.md).
constexpr int most_hosts_of_star = 3000;
/// Hosts times ranks: each host gets all that ranks of an MPI exchange to meet; 558 bytes a rank with MPICH make 9 GB of this.
constexpr long most_words_of_star = 16'000'000;

bool is_beyond_star(engine_job const& job) {
    return job.map.nodes_used() > most_hosts_of_star;
}

/// Returns why the engine remote, which could start the ranks, comes after those of an MPI library; nothing if it does not.
std::optional<std::string> reason_to_wait(engine_job const& job, scheduler_sources const& sources) {
    auto const scheduler = job.given.scheduler;
    bool const by_flux = scheduler == scheduler_kind::flux && job.remote_shell.empty();
    if (scheduler == scheduler_kind::slurm) return "in a Slurm job it is chosen by --engine remote only";
    if (scheduler != scheduler_kind::hostfile && scheduler != scheduler_kind::pbs && scheduler != scheduler_kind::flux)
        return fmt::format("nobody has tried it in a job of {}", to_string(scheduler));
    if (scheduler == scheduler_kind::hostfile && job.remote_shell.empty())
        for (auto const* const name :
             {"OMPI_MCA_plm_rsh_agent", "OMPI_MCA_plm_ssh_agent", "PRTE_MCA_plm_ssh_agent", "HYDRA_LAUNCHER_EXEC"})
            if (sources.variables.has(name))
                return fmt::format("{} names another remote shell than ssh; --remote-shell names it to muster, too", name);
    if (has_pals(sources)) return "PALS' mpiexec is here, which knows this machine's network";
    if (!by_flux && is_beyond_star(job))
        return fmt::format("{} hosts are more than one process tells well", job.map.nodes_used());
    if (by_flux) return std::nullopt;  // an MPI's own launcher would use ssh, or the same flux exec
    if (auto const mpi = find_mpi(job, sources); mpi.family != mpi_family::none)
        return fmt::format("{} uses {}, whose own launcher comes first", job.program, mpi.library);
    return std::nullopt;
}

/// Returns why not to choose this engine, which could start the ranks, unless the user asks for it; nothing if there is no
/// reason.
std::optional<std::string> passed_over(engine_row const& row, engine_job const& job, scheduler_sources const& sources) {
    if (row.name == "srun") return std::nullopt;  // it has checked the program itself
    bool const pals = has_pals(sources);
    if (row.name == "mpirun" && pals && job.given.scheduler == scheduler_kind::pbs)
        return "PALS' mpiexec is here, which knows this machine's network; --engine mpirun takes it all the same";
    auto const mpi = find_mpi(job, sources);
    if (row.name == "mpiexec" && pals) return std::nullopt;  // it works with both
    auto const speaks = row.name == "remote" ? wire_up::pmix_and_pmi : row.name == "mpirun" ? wire_up::pmix : wire_up::pmi;
    if (is_foreign(mpi.family, speaks))
        return fmt::format("{} uses {}, whose ranks would each come up alone under it; --engine {} takes it all the same",
                           job.program, mpi.library, row.name);
    return std::nullopt;
}

engine_row const& forced_engine(engine_job const& job, scheduler_sources const& sources, std::string_view name) {
    std::vector<std::string> names{"embedded"};
    for (auto const& row : table) {
        names.emplace_back(row.name);
        if (row.name != name) continue;
        if (auto const why = beyond_first_component(job, sources.variables)) throw error(errc::unavailable, *why);
        if (auto const why = row.unavailable(job, sources))
            throw_error(errc::unavailable, "--engine {} cannot run here: {}; without --engine muster takes one that can", name,
                        *why);
        return row;
    }
    if (name == "embedded")
        throw_error(errc::unavailable,
                    "--engine embedded starts ranks on this node only, and this job has {}; leave --engine out, or use fewer "
                    "nodes (--nodes 1)",
                    job.map.nodes_used());
    throw_error(errc::usage, "--engine {} is unknown; use {}", name, join(names, ", "));
}

/// Returns lines that write the file, whatever it contains: no line of it may end the here-document.
std::string here_document(std::string const& path, std::string const& contents) {
    std::string end = "END";
    while (("\n" + contents).find("\n" + end + "\n") != std::string::npos) end += "_";
    auto const newline = contents.empty() || contents.back() == '\n' ? "" : "\n";
    return fmt::format("cat >{} <<'{}'\n{}{}{}\n", shell_quote(path), end, contents, newline, end);
}

}  // namespace

std::span<engine_row const> engines() noexcept {
    return table;
}

engine_row const& choose_engine(engine_job const& job, scheduler_sources const& sources, std::string_view forced,
                                std::vector<std::string>* tried) {
    if (!forced.empty()) return forced_engine(job, sources, forced);
    std::string refusals;
    engine_row const* last = nullptr;
    for (auto const& row : table) {
        auto why = row.unavailable(job, sources);
        if (!why) why = passed_over(row, job, sources);
        if (!why && row.name == "remote" && (why = reason_to_wait(job, sources))) last = &row;
        if (!why) return row;
        auto const line = fmt::format("{}: {}", row.name, *why);
        if (tried != nullptr) tried->push_back(line);
        refusals += "\n  " + line;
    }
    if (last != nullptr) return *last;
    // No other MPI starts a step in two components.
    if (auto const why = beyond_first_component(job, sources.variables)) throw error(errc::unavailable, *why);
    auto const nodes = job.map.nodes_used();
    throw_error(errc::unavailable,
                "no engine can start the ranks on {}:{}\nload the MPI that the program is built with, so that its mpirun or "
                "mpiexec is on PATH (module load openmpi)",
                counted(nodes, "node"), refusals);
}

std::string note_on_size(engine_job const& job, scheduler_sources const& sources, std::string_view engine) {
    int const hosts = job.map.nodes_used();
    bool const many = is_beyond_star(job);
    bool const mpi =
        static_cast<long>(hosts) * ranks_of(job) > most_words_of_star && find_mpi(job, sources).family != mpi_family::none;
    if (engine == "remote" && mpi)
        return fmt::format(
            "{} hosts and {} ranks of MPI: remote sends what ranks tell each other from one process to every host; an "
            "engine with a tree starts them sooner (srun, the MPI's own mpirun or mpiexec on PATH)",
            hosts, ranks_of(job));
    if (engine == "remote" && many)
        return fmt::format(
            "{} hosts: remote tells each from one process; an engine with a tree starts them sooner (srun, or an "
            "mpirun or mpiexec on PATH)",
            hosts);
    if (many && job.given.scheduler == scheduler_kind::hostfile && (engine == "mpirun" || engine == "mpiexec"))
        return fmt::format("{} hosts: {} starts them by a tree of its daemons; --engine remote tells each from one process",
                           hosts, engine);
    return {};
}

std::string shell_text(engine_command const& command, environment const& base) {
    std::string text;
    for (auto const& [path, contents] : command.files) text += here_document(path, contents);
    std::vector<std::string> words;
    for (auto const& [name, value] : base)
        if (!command.variables.has(name)) words.insert(words.end(), {"-u", name});
    for (auto const& [name, value] : command.variables)
        if (base.get(name) != value) words.push_back(name + "=" + value);
    if (!words.empty()) words.insert(words.begin(), "env");
    words.insert(words.end(), command.argv.begin(), command.argv.end());
    return text + shell_join(words) + "\n";
}

pid_t start_engine(engine_command const& command, more_open_files const& files, standard_fds const& fds) {
    return start_process({.path = find_program(command.argv.front(), command.variables, ""),
                          .arguments = &command.argv,
                          .variables = &command.variables,
                          .working_dir = "",
                          .stdin_fd = fds.in,
                          .stdout_fd = fds.out,
                          .stderr_fd = fds.err,
                          .own_session = command.own_session,
                          .open_files = files.inherited()});
}

}  // namespace muster
