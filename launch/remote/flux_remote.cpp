#include "launch/remote/flux_remote.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <span>

#include "base/process/process.hpp"
#include "base/process/run_captured.hpp"
#include "base/process/this_process.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/system/network.hpp"
#include "launch/system/signal_table.hpp"

namespace muster {

namespace {

/// These are only for this node.
constexpr std::array gpu_variables{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                   "ZE_AFFINITY_MASK"};

std::string ask_hostlist(environment const& variables) {
    std::vector<std::string> const question{"flux", "getattr", "hostlist"};
    auto const answer = run_captured(question, variables);
    if (answer.exit_status != 0)
        throw_error(errc::unavailable,
                    "muster fluxrsh: {} failed (code {}): {}; it works only in a Flux instance, such as the script of flux batch",
                    join(question, " "), answer.exit_status, without_controls(trim(answer.err)));
    return answer.out;
}

}  // namespace

std::optional<int> broker_on(std::string_view hostlist, std::string_view host, std::string_view origin) {
    std::optional<int> alike;
    int broker = 0;
    for (auto const& name : expand_hostlist(trim(hostlist), origin)) {
        if (name == host) return broker;
        if (!alike && short_name(name) == short_name(host)) alike = broker;
        ++broker;
    }
    return alike;
}

std::vector<std::string> flux_exec_words(int broker, std::string const& command, environment const& variables) {
    // This process' folder may not exist there.
    std::vector<std::string> words{"flux", "exec", "--quiet", fmt::format("--rank={}", broker), "--dir=/", "env"};
    for (auto const* const name : gpu_variables)
        if (variables.get_or(name, "") != "-1") words.insert(words.end(), {"-u", name});
    words.insert(words.end(), {"/bin/bash", "-c", command});
    return words;
}

int fluxrsh_command(std::vector<std::string> const& words, environment const& variables) {
    if (words.size() < 2)
        throw error(errc::usage, "muster fluxrsh HOST COMMAND… is what engines call in a Flux job; it needs both");
    auto const hosts = ask_hostlist(variables);
    auto const broker = broker_on(hosts, words.front(), "flux getattr hostlist");
    if (!broker)
        throw_error(errc::unavailable, "muster fluxrsh: this Flux instance has no broker on {}, only on {}; name one of those",
                    words.front(), without_controls(trim(hosts)));
    auto const flux = flux_exec_words(*broker, join(std::span(words).subspan(1), " "), variables);
    ignore_signals(process_kind::remote_shell);
    replace_program(find_program("flux", variables, ""), flux, variables);
}

bool is_fluxrsh(std::vector<std::string> const& shell) {
    return shell.size() > 1 && shell[1] == "fluxrsh";
}

std::string remote_shell_name(std::vector<std::string> const& shell) {
    return is_fluxrsh(shell) ? "flux exec" : shell.front();
}

std::vector<std::string> fluxrsh_words(std::string const& muster) {
    return {muster, "fluxrsh"};
}

std::string fluxrsh_script(std::string const& muster) {
    return fmt::format("exec {} fluxrsh \"$@\"\n", shell_quote(muster));
}

/// Brokers run commands only for the owner of their instance: a job's own instance belongs to its user.
std::optional<std::string> flux_exec_unavailable(scheduler_sources const& sources) {
    auto const answer = sources.run_command({"flux", "getattr", "security.owner"});
    if (answer.exit_status == 127) return "there is no flux on PATH";
    auto const owner = parse_integer(trim(answer.out));
    if (answer.exit_status != 0 || !owner) return fmt::format("flux getattr security.owner failed: {}", first_line(answer));
    if (*owner == static_cast<std::int64_t>(::geteuid())) return std::nullopt;
    return fmt::format(
        "flux exec is for the owner of the instance, user {}; start muster in the script of flux batch or the shell of "
        "flux alloc, where the instance is yours",
        *owner);
}

}  // namespace muster
