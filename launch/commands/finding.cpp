#include "launch/commands/commands.hpp"

#include <fmt/format.h>

#include <cstring>

namespace muster {

using state = finding::state;

finding describe_no_gpu(topology const& machine, std::optional<int> asked, bool verbose) {
    auto const& hidden_by = machine.gpus_hidden_by;
    auto found = fmt::format("none{}: {}", hidden_by.empty() ? "" : fmt::format(" visible ({})", hidden_by), machine.gpu_note);
    if (verbose && !machine.gpu_detail.empty()) found += fmt::format(" ({})", machine.gpu_detail);
    // Flux gives this value to jobs that have requested no GPU.
    std::string const unhide = hidden_by.ends_with("=-1")
                                   ? "in a job of Flux ask for them (--gpus-per-slot, --exclusive); elsewhere take out "
                                     "what sets that variable, in the job's script or the shell's start files"
                                   : "take out what sets that variable, in the job's script or the shell's start files";
    if (asked.value_or(0) > 0)
        return {
            state::missing, "GPUs", fmt::format("the job has {} on {}, and here are {}", *asked, machine.host, found),
            hidden_by.empty() ? "see nvidia-smi -L; if it shows none either, ask for another node and tell the site" : unhide};
    return {state::note, "GPUs", found,
            hidden_by.empty() ? "a slot is a core then; on a GPU node install or load the NVIDIA driver"
                              : fmt::format("a slot is a core then; if GPUs are wanted, {}", unhide)};
}

finding describe_binding(int refused, bind_policy wanted) {
    if (refused == 0) return {state::ok, "binding", "ranks can be bound to cores", ""};
    auto const found = fmt::format("sched_setaffinity: {}", std::strerror(refused));
    if (wanted == bind_policy::none) return {state::note, "binding", found + "; ranks are not bound (--bind-to none)", ""};
    return {state::missing, "binding", found,
            "give muster run --bind-to none (or set MUSTER_BIND_TO=none), or allow the call in the container's seccomp profile"};
}

finding describe_pbs(std::string const& qsub, std::string const& qstat) {
    if (!qsub.empty() && !qstat.empty()) return {state::ok, "PBS", fmt::format("{}, {}", qsub, qstat), ""};
    return {state::note, "PBS",
            fmt::format("no {} on PATH", !qsub.empty()    ? "qstat"
                                         : !qstat.empty() ? "qsub"
                                                          : "qsub, no qstat"),
            "add PBS_EXEC/bin to PATH (see /etc/pbs.conf): muster submit, jobs and watch use them"};
}

}  // namespace muster
