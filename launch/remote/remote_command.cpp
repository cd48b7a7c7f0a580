#include "launch/remote/remote_command.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/remote/remote_starter.hpp"
#include "launch/system/absolute_path.hpp"
#include "launch/system/host_name.hpp"

namespace muster {

namespace {

constexpr std::string_view usage =
    "muster remote is what muster run starts as its engine; start ranks with: muster run --engine remote";

remote_order read_order(std::vector<std::string> const& args) {
    remote_order order;
    auto const divider = std::find(args.begin(), args.end(), "--");
    if (args.empty() || divider == args.end() || divider + 1 == args.end()) throw error(errc::usage, std::string(usage));
    order.hosts = parse_host_ranks(read_text_file(args.front()), args.front());
    order.shim.assign(divider + 1, args.end());
    order.working_dir = absolute_path(".");
    for (auto word = args.begin() + 1; word != divider; ++word) {
        std::string_view const option = *word;
        auto const value = [&](std::string_view name) { return std::string(option.substr(name.size())); };
        if (option.starts_with("--shell="))
            order.shell = shell_split(value("--shell="), "--shell");
        else if (option.starts_with("--interface="))
            order.interface = value("--interface=");
        else if (option.starts_with("--pass-key="))
            order.pass_key = value("--pass-key=");
        else if (option.starts_with("--lost-after="))
            order.lost_after = duration(parse_integer(value("--lost-after=")).value_or(0));
        else if (option.starts_with("--munge-socket="))
            order.munge_socket = value("--munge-socket=");
        else if (option == "--by-scheduler")
            order.by_scheduler = true;
        else if (option == "--at-once")
            order.at_once = true;
        else if (option == "--probe")
            order.probe = true;
        else
            throw error(errc::usage, std::string(usage));
    }
    if (order.lost_after <= duration(0)) throw error(errc::usage, std::string(usage));
    if (order.hosts.empty()) throw error(errc::usage, fmt::format("{} names no host; {}", args.front(), usage));
    return order;
}

}  // namespace

int remote_command(std::vector<std::string> const& args, environment const& variables) {
    return remote_starter(variables, read_order(args)).run();
}

int agent_command(std::vector<std::string> const& args, environment const& variables) try {
    auto const number = args.size() != 4 ? std::nullopt : args[0] == "slurm" ? std::optional(-1L) : parse_integer(args[0]);
    auto const count = args.size() == 4 ? parse_integer(args[1]) : std::nullopt;
    if (!number || !count)
        throw error(errc::usage, "muster agent is what muster run starts on each host; start ranks with: muster run");
    return host_agent(variables, {static_cast<int>(*number), static_cast<int>(*count), args[2], args[3]}).run();
} catch (error const& e) {
    throw error(e.code(), fmt::format("on {}: {}", short_host_name(), e.what()));
}

}  // namespace muster
