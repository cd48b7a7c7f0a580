

#include "base/command/given_options.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/remote/remote_starter.hpp"
#include "launch/system/home_folder.hpp"
#include "launch/system/network.hpp"

namespace muster {

namespace {

constexpr std::string_view usage =
    "muster remote is what muster run starts as its engine; start ranks with: muster run --engine remote";

constexpr option_row rows[]{{.name = "shell", .argument = "WORDS"},
                            {.name = "interface", .argument = "NAME"},
                            {.name = "pass-key", .argument = "WAY"},
                            {.name = "lost-after", .argument = "SECONDS", .fallback = "15"},
                            {.name = "try-for", .argument = "SECONDS", .fallback = "0"},
                            {.name = "first-agent", .argument = "N", .fallback = "0"},
                            {.name = "munge-socket", .argument = "PATH"},
                            {.name = "by-scheduler"},
                            {.name = "at-once"},
                            {.name = "in-steps"},
                            {.name = "probe"}};

remote_order read_order(std::vector<std::string> const& args) {
    given_options const given("muster remote", rows, 1, args, true);
    remote_order order;
    order.lost_after = duration(parse_integer(given.text("lost-after")).value_or(0));
    order.try_for = duration(parse_integer(given.text("try-for")).value_or(0));
    if (given.words().empty() || given.program().empty() || order.lost_after <= duration(0))
        throw error(errc::usage, std::string(usage));
    auto const& file = given.words().front();
    order.hosts = parse_host_ranks(read_text_file(file), file);
    if (order.hosts.empty()) throw_error(errc::usage, "{} names no host; {}", file, usage);
    order.shim = given.program();
    order.working_dir = absolute_path(".");
    order.shell = shell_split(given.text("shell"), "--shell");
    order.interface = given.text("interface");
    order.pass_key = given.text("pass-key");
    if (given.has("munge-socket")) order.munge_socket = given.text("munge-socket");
    order.first_agent = static_cast<std::size_t>(std::max(0L, parse_integer(given.text("first-agent")).value_or(0)));
    if (order.first_agent > 0) order.try_for = duration(0);  // a late host is asked for again anyway
    order.by_scheduler = given.has("by-scheduler");
    order.at_once = given.has("at-once");
    order.in_steps = given.has("in-steps");
    if (!given.has("probe")) order.blame_file = blame_file(file);
    order.probe = given.has("probe");
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
    auto own = variables;
    provide_home(own);
    return host_agent(std::move(own), {static_cast<int>(*number), static_cast<int>(*count), args[2], args[3]}).run();
} catch (error const& e) {
    throw_error(e.code(), "on {}: {}", short_host_name(), e.what());
}

}  // namespace muster
