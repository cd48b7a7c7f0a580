#include "launch/engine/pbs_remote.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

std::string contents_of(std::string const& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace

std::optional<std::string> pbs_exec(std::string_view pbs_conf) {
    std::optional<std::string> folder;
    for (auto const line : split(pbs_conf, '\n')) {
        auto const setting = trim(line);
        constexpr std::string_view name = "PBS_EXEC=";
        if (setting.starts_with(name) && setting.size() > name.size()) folder = trim(setting.substr(name.size()));
    }
    return folder;
}

std::string spelled_as_in(std::string_view node_file, std::string_view host) {
    std::string_view alike;
    for (auto const line : split(node_file, '\n')) {
        auto const name = trim(line);
        if (name == host) return std::string(name);
        if (alike.empty() && !name.empty() && short_name(name) == short_name(host)) alike = name;
    }
    return std::string(alike.empty() ? host : alike);
}

int tmrsh_command(std::vector<std::string> const& args, environment const& variables) {
    if (args.size() < 2) throw error(errc::usage, "muster tmrsh HOST COMMAND… is what engines call in a PBS job; it needs both");
    auto const node_file = variables.get("PBS_NODEFILE");
    if (!node_file) throw error(errc::unavailable, "muster tmrsh: PBS_NODEFILE is not set; this works only in a PBS job");
    auto const conf = variables.get_or("PBS_CONF_FILE", "/etc/pbs.conf");
    auto const folder = variables.get("PBS_EXEC").value_or(pbs_exec(contents_of(conf)).value_or("/opt/pbs"));
    std::string const program = folder + "/bin/pbs_tmrsh";
    std::string const host = spelled_as_in(contents_of(*node_file), args.front());
    std::string const command = join(std::span(args).subspan(1), " ");
    ::signal(SIGTERM, SIG_IGN);  // stays so through exec
    ::signal(SIGINT, SIG_IGN);
    ::execl(program.c_str(), "pbs_tmrsh", host.c_str(), "/bin/bash", "-c", command.c_str(), static_cast<char*>(nullptr));
    throw_system("execl", program, 0, "PBS_EXEC in " + conf + " says where PBS is");
}

}  // namespace muster
