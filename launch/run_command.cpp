#include "launch/run_command.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "base/error.hpp"
#include "launch/embedded_engine.hpp"
#include "launch/guardian.hpp"
#include "launch/options.hpp"
#include "launch/placement_options.hpp"
#include "launch/spawn.hpp"

namespace muster {

namespace po = boost::program_options;

namespace {

constexpr char const* help = R"(muster run [-n N] [options] [--] program [args…]      one rank per GPU on this node

  muster run -- python train.py           one rank for each GPU (without GPUs: for each core)
  muster run -n 4 --tag-output -- ./a.out

placement
{}
the ranks
  -x [--env] NAME[=VALUE]     set a variable for the ranks (all of yours are passed on anyway)
  --wd DIR                    their working directory
output
  --tag-output                put [host:rank] before each line
  --timestamp-output          put the time before each line
  --output-dir DIR            keep each rank's output in DIR/rank.NN/stdout and stderr as well
  -q [--quiet]                no notes, only errors
time
  --timeout T                 end the run after T (90s, 5min, 1:30:00): exit code 124
  --start-timeout T           all ranks must have initialised MPI after T, once one has: else 124
  --grace T                   from the request to end (SIGTERM) to SIGKILL [5s]
  --allow-singletons          ranks may use MPI alone; otherwise that is an error
exit code: of the rank that failed first (128+n for signal n); 124 time, 125 muster, 126/127 program, 2 usage
)";

std::optional<duration> read_duration(po::variables_map const& values, std::string const& name) {
    if (values.count(name) == 0) return std::nullopt;
    return parse_duration(values[name].as<std::string>(), "--" + name);
}

po::options_description make_description() {
    po::options_description d;
    add_placement_options(d);
    d.add_options()("env,x", po::value<std::vector<std::string>>())("wd", po::value<std::string>())(
        "tag-output", po::bool_switch())("timestamp-output", po::bool_switch())("output-dir", po::value<std::string>())(
        "quiet,q", po::bool_switch())("timeout", po::value<std::string>())("start-timeout", po::value<std::string>())(
        "grace", po::value<std::string>())("allow-singletons", po::bool_switch())("help,h", po::bool_switch());
    return d;
}

std::string text_of(po::variables_map const& values, std::string const& name) {
    return values.count(name) == 0 ? std::string() : values[name].as<std::string>();
}

}  // namespace

std::optional<run_options> parse_run_options(std::vector<std::string> const& args) {
    run_options options;
    auto const values = parse_options(args, make_description(), options.command);
    if (values["help"].as<bool>()) return std::nullopt;
    if (options.command.empty() || options.command.front().empty())
        throw error(errc::usage, "no program to run; write: muster run [options] -- program args…");
    options.place = read_placement_options(values);
    options.scheduler_local = read_scheduler_local(values);
    if (values.count("env") != 0) options.exports = values["env"].as<std::vector<std::string>>();
    options.working_dir = text_of(values, "wd");
    options.output_dir = text_of(values, "output-dir");
    options.tag_output = values["tag-output"].as<bool>();
    options.timestamp_output = values["timestamp-output"].as<bool>();
    options.quiet = values["quiet"].as<bool>();
    options.allow_singletons = values["allow-singletons"].as<bool>();
    options.timeout = read_duration(values, "timeout");
    options.start_timeout = read_duration(values, "start-timeout");
    options.grace = read_duration(values, "grace").value_or(options.grace);
    return options;
}

int run_command(std::vector<std::string> const& args, environment const& variables) {
    auto const options = parse_run_options(args);
    if (!options) {
        fmt::print(fmt::runtime(help), placement_help);
        return 0;
    }
    return run_guarded([&](std::string const& session_dir, int guardian_fd) {
        try {
            return run_embedded(*options, variables, session_dir, guardian_fd);
        } catch (program_error const& e) {
            fmt::print(stderr, "muster: error: {}\n", e.what());
            return e.exit_status();
        } catch (error const& e) {
            fmt::print(stderr, "muster: error: {}\n", e.what());
            return exit_code(e.code());
        } catch (std::exception const& e) {
            fmt::print(stderr, "muster: error: {}\n", e.what());
            return exit_code(errc::internal);
        }
    });
}

}  // namespace muster
