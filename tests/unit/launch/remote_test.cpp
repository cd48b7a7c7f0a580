// The parts of a remote start that need no host: the list of hosts, the ticket of an agent, the engine's command.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "launch/engine/engines.hpp"
#include "launch/remote/host_agent.hpp"
#include "launch/remote/host_ranks.hpp"
#include "launch/remote/unreached_host.hpp"
#include "launch/wire/run_key.hpp"
#include "tests/unit/launch/engine_answers.hpp"

namespace muster {
namespace {

using testing_engines::answers;
using testing_engines::job_on;
using words = std::vector<std::string>;

std::string const cookie = "0123456789ABCDEF0123456789ABCDEF";

TEST(host_ranks, come_back_as_they_were) {
    std::vector<host_ranks> const hosts{{"node1", {0, 1, 2, 5}, true},
                                        {"me@node2.lab.example", {3, 4}, false},
                                        {"node3", {6, 7}, false, true},
                                        {"node4", {8}, true, true}};
    EXPECT_EQ(to_lines(hosts), "node1 0-2,5 here\nme@node2.lab.example 3-4\nnode3 6-7 spare\nnode4 8 here spare\n");
    EXPECT_EQ(parse_host_ranks(to_lines(hosts), "a file"), hosts);
    EXPECT_EQ(count_ranks(hosts), 9);
    for (auto const* text : {"node1", "node1 0-1 there", "node1 x", "node1 0 here too"})
        EXPECT_THROW(parse_host_ranks(text, "a file"), error) << text;
}

TEST(host_ranks, ranks_of_regular_hosts_are_few_numbers) {
    std::vector<std::vector<int>> block(1000), dealt(1000);
    for (int host = 0; host < 1000; ++host)
        for (int i = 0; i < 8; ++i) {
            block[static_cast<std::size_t>(host)].push_back(host * 8 + i);
            dealt[static_cast<std::size_t>(host)].push_back(host + i * 1000);
        }
    EXPECT_EQ(pack_ranks(block), (std::vector<int>{1000, 0, 8, 1, 8}));
    EXPECT_EQ(pack_ranks(dealt), (std::vector<int>{1000, 0, 8, 1000, 1}));
    block.push_back({8000, 8001});
    EXPECT_EQ(pack_ranks(block).size(), 10u);
    std::vector<std::vector<int>> const irregular{{0, 1, 2, 5, 9}, {}, {3, 4}, {6, 7}, {8}};
    for (auto const& hosts : {block, dealt, irregular, std::vector<std::vector<int>>(3), std::vector<std::vector<int>>()})
        EXPECT_EQ(unpack_ranks(pack_ranks(hosts), hosts.size(), 8002), hosts);
}

TEST(host_ranks, runs_that_nobody_packs_are_refused) {
    for (auto const& runs : std::vector<std::vector<int>>{{1, 0, 1, 1},
                                                          {0, 0, 1, 1, 0},
                                                          {2, 0, 1, 1, 0},
                                                          {-1, 0, 1, 1, 0},
                                                          {1, 0, -1, 1, 0},
                                                          {1, 0, 2, 0, 0},
                                                          {1, -1, 1, 1, 0},
                                                          {1, 7, 2, 1, 0},
                                                          {1, 0, 2, 2'147'483'647, 0},
                                                          {1, 0, 2'147'483'647, 1, 0},
                                                          {}})
        EXPECT_THROW(unpack_ranks(runs, 1, 8), error) << ::testing::PrintToString(runs);
    EXPECT_THROW(unpack_ranks({1, 0, 1, 1, 0}, 2, 8), error);
}

TEST(host_ranks, numbers_go_beyond_those_of_processors) {
    EXPECT_EQ(parse_host_ranks("node1 79998-79999", "a file").at(0).ranks, (std::vector<int>{79998, 79999}));
    EXPECT_EQ(parse_numbers("3,0-1,1", "a list"), (std::vector<int>{0, 1, 3}));
    for (auto const* text : {"", "a", "1-", "-1", "2-1", "0-99999999", "0,,1", "99999999999"})
        EXPECT_THROW(parse_numbers(text, "a list"), error) << text;
}

TEST(agent_ticket, opens_with_the_jobs_secret_only) {
    auto const key = make_run_key();
    auto const ticket = seal_for_job(key, {{"PBS_JOBCOOKIE", cookie}});
    EXPECT_EQ(redeem_ticket(ticket, {{"PBS_JOBCOOKIE", cookie}}), key);
    EXPECT_NE(ticket, seal_for_job(key, {{"PBS_JOBCOOKIE", cookie}})) << "a nonce of its own each time";
    EXPECT_EQ(ticket.find(to_text(key)), std::string::npos);
    EXPECT_EQ(ticket.find(cookie), std::string::npos);
    auto other = cookie;
    other.back() = 'E';
    EXPECT_THROW(redeem_ticket(ticket, {{"PBS_JOBCOOKIE", other}}), error);
    EXPECT_THROW(
        redeem_ticket(ticket.substr(0, ticket.size() - 1) + (ticket.back() == '0' ? "1" : "0"), {{"PBS_JOBCOOKIE", cookie}}),
        error);
    EXPECT_THROW(redeem_ticket("job:", {{"PBS_JOBCOOKIE", cookie}}), error);
    EXPECT_THROW(redeem_ticket(ticket, {}), error);
    EXPECT_THROW(seal_for_job(key, {}), error);
    EXPECT_THROW(redeem_ticket("job:1:2", {{"PBS_JOBCOOKIE", cookie}}), error);
    EXPECT_THROW(redeem_ticket("", {}), error);
}

TEST(agent_ticket, is_refused_where_it_is_not_whole) {
    environment const job{{"PBS_JOBCOOKIE", cookie}};
    auto const ticket = seal_for_job(make_run_key(), job);
    for (std::size_t size = 0; size < ticket.size(); ++size)
        EXPECT_THROW(redeem_ticket(ticket.substr(0, size), job), error) << size;
    for (std::size_t at = 0; at < ticket.size(); ++at) {
        auto changed = ticket;
        changed[at] = changed[at] == '0' ? '1' : '0';
        EXPECT_THROW(redeem_ticket(changed, job), error) << at;
    }
    EXPECT_THROW(redeem_ticket(ticket + "00", job), error);
    EXPECT_THROW(redeem_ticket("xyz:" + ticket.substr(4), job), error);
    EXPECT_THROW(redeem_ticket("job:" + to_text(make_run_key()), job), error) << "a key in clear";
    EXPECT_THROW(seal_for_job(make_run_key(), {{"PBS_JOBCOOKIE", "short"}}), error);
    EXPECT_THROW(seal_for_job(make_run_key(), {{"PBS_JOBCOOKIE", std::string(65, 'x')}}), error);
}

/// Of this process, while it lives.
class standard_input {
  public:
    explicit standard_input(std::string const& text) : saved_(::dup(STDIN_FILENO)) {
        int ends[2];
        if (::pipe(ends) != 0 || ::write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
        ::dup2(ends[0], STDIN_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
    }
    ~standard_input() {
        ::dup2(saved_, STDIN_FILENO);
        ::close(saved_);
    }

  private:
    int saved_;
};

TEST(agent_ticket, may_be_on_standard_input_or_in_a_file) {
    auto const key = make_run_key();
    {
        standard_input const in(to_text(key) + "\nwhat follows is not read\n");
        EXPECT_EQ(redeem_ticket("stdin", {}), key);
    }
    for (auto const& text :
         {std::string(), std::string("\n"), to_text(key).substr(1) + "\n", to_text(key) + "0\n", std::string(1000, '0')}) {
        standard_input const in(text);
        EXPECT_THROW(redeem_ticket("stdin", {}), error) << text.size();
    }
    auto const folder = std::filesystem::temp_directory_path() / ("muster-ticket-test." + std::to_string(::getpid()));
    key_file const file(folder.string(), key);
    EXPECT_EQ(redeem_ticket("file:" + file.path(), {}), key);
    EXPECT_THROW(redeem_ticket(file.path(), {}), error);
    ::chmod(file.path().c_str(), 0644);
    EXPECT_THROW(redeem_ticket("file:" + file.path(), {}), error) << "others can read it";
    std::filesystem::remove_all(folder);
}

TEST(remote_starter, tells_of_a_host_that_it_does_not_reach) {
    unreached_host const host{12, "could not be reached: ssh\nexited with code 255"};
    EXPECT_EQ(parse_unreached_host(to_line(host)), (unreached_host{12, "could not be reached: ssh exited with code 255"}));
    for (auto const* other : {"", "ssh: connect to host node1 port 22: No route to host", "muster: no probe on host x: why",
                              "muster: no probe on host 3", "muster: no probe on host -1: why"})
        EXPECT_EQ(parse_unreached_host(other), std::nullopt) << other;
    EXPECT_EQ(describe_call_end(255 << 8, "/opt/muster"), "exited with code 255");
    EXPECT_EQ(describe_call_end(127 << 8, "/opt/muster"), "exited with code 127; is muster at /opt/muster there?");
    EXPECT_EQ(describe_call_end(9, "/opt/muster"), "was killed by signal 9 (SIGKILL)");
}

TEST(remote_engine, is_not_where_its_shell_is_not) {
    answers with_ssh;
    with_ssh.said["ssh -V"] = {0, "", "OpenSSH_9.2p1"};
    auto job = job_on({1, 1}, {-1, -1}, scheduler_kind::hostfile);
    EXPECT_EQ(remote_unavailable(job, with_ssh.sources()), std::nullopt);
    EXPECT_EQ(remote_unavailable(job, answers{}.sources()), "there is no ssh on PATH");
    job.remote_shell = "rsh";
    EXPECT_EQ(remote_unavailable(job, answers{}.sources()), std::nullopt);
}

TEST(remote_engine, starts_its_own_hosts_agent_itself) {
    auto job = job_on({2, 1}, {-1, -1}, scheduler_kind::hostfile);
    job.given.nodes[0].name = "localhost";
    EXPECT_EQ(remote_command_line(job, answers{}.sources()).files.at(0).second, "localhost 0-1 here\nn1 2\n");
}

TEST(remote_engine, calls_each_host_once) {
    auto job = job_on({2, 0, 3}, {-1, -1, -1}, scheduler_kind::hostfile);
    auto const command = remote_command_line(job, answers{}.sources());
    EXPECT_EQ(command.argv,
              (words{"/bin/muster", "remote", "/scratch/remote.hosts", "--shell=ssh -x -T -o BatchMode=yes -o ConnectTimeout=10",
                     "--pass-key=auto", "--lost-after=15", "--", "/bin/muster", "shim", "a.out"}));
    EXPECT_EQ(command.files.at(0), (std::pair<std::string, std::string>("/scratch/remote.hosts", "n0 0-1\nn2 2-4\n")));
    EXPECT_EQ(command.speaks, wire_up::pmix_and_pmi);
    EXPECT_FALSE(command.own_session);
    job.map.order = map_policy::node;
    EXPECT_EQ(remote_command_line(job, answers{}.sources()).files.at(0).second, "n0 0,2\nn2 1,3-4\n");
    job.remote_shell = "rsh -l me";
    job.extra_arguments = {"-p", "a b"};
    job.network_interface = "ib0";
    job.lost_after = duration(40.5);
    job.probe = true;
    auto const probe = remote_command_line(job, answers{}.sources());
    EXPECT_EQ(words(probe.argv.begin() + 3, probe.argv.begin() + 8),
              (words{"--shell=rsh -l me -p 'a b'", "--pass-key=auto", "--lost-after=41", "--interface=ib0", "--probe"}));
    EXPECT_EQ(probe.files.at(0).second, "n0 0\nn2 1\n");
}

TEST(remote_engine, goes_through_tm_in_a_pbs_job) {
    auto const pbs = remote_command_line(job_on({1, 1}, {-1, -1}, scheduler_kind::pbs), answers{}.sources());
    EXPECT_EQ(pbs.argv.at(3), "--shell=/bin/muster tmrsh");
    EXPECT_EQ(pbs.argv.at(6), "--by-scheduler");
    auto by_ssh = job_on({1, 1}, {-1, -1}, scheduler_kind::pbs);
    by_ssh.remote_shell = "ssh";
    auto const argv = remote_command_line(by_ssh, answers{}.sources()).argv;
    EXPECT_EQ(argv.at(3), "--shell=ssh");
    EXPECT_EQ(std::count(argv.begin(), argv.end(), "--by-scheduler"), 0);
    EXPECT_TRUE(pbs.own_session) << "SIGTERM of PBS goes to every process of the script's session";
    EXPECT_EQ(remote_unavailable(job_on({1, 1}, {-1, -1}, scheduler_kind::pbs), answers{}.sources()), std::nullopt);
}

TEST(remote_engine, starts_all_agents_by_one_srun_in_a_slurm_job) {
    answers with_srun;
    with_srun.said["srun --version"] = {0, "slurm 22.05.8\n", ""};
    auto job = job_on({2, 2}, {-1, -1}, scheduler_kind::slurm);
    EXPECT_EQ(remote_unavailable(job, with_srun.sources()), std::nullopt);
    EXPECT_EQ(remote_unavailable(job, answers{}.sources()), "there is no srun on PATH");
    job.munge_socket = "/run/munge/socket";
    job.extra_arguments = {"--slurmd-debug=info"};
    auto const command = remote_command_line(job, with_srun.sources());
    auto const& argv = command.argv;
    auto const shell = std::find_if(argv.begin(), argv.end(), [](auto const& word) { return word.starts_with("--shell="); });
    ASSERT_NE(shell, argv.end());
    EXPECT_EQ(shell->rfind("--shell=srun ", 0), 0u) << *shell;
    for (auto const* word : {" --ntasks=2", " --mpi=none", " --input=all", " --kill-on-bad-exit=0", " --slurmd-debug=info"})
        EXPECT_NE(shell->find(word), std::string::npos) << word << " in " << *shell;
    EXPECT_EQ(shell->find("shim"), std::string::npos) << *shell;
    EXPECT_EQ(std::count(argv.begin(), argv.end(), "--at-once"), 1);
    EXPECT_EQ(std::count(argv.begin(), argv.end(), "--munge-socket=/run/munge/socket"), 1);
    EXPECT_EQ(words(argv.end() - 3, argv.end()), (words{"/bin/muster", "shim", "a.out"}));
    job.remote_shell = "ssh";
    EXPECT_EQ(remote_command_line(job, with_srun.sources()).argv, argv) << "which would lead past Slurm";
}

TEST(remote_engine, starts_each_agent_by_an_srun_of_its_own_where_a_lost_node_is_to_end_no_other) {
    answers with_srun;
    with_srun.said["srun --version"] = {0, "slurm 22.05.8\n", ""};
    auto job = job_on({0, 2, 2}, {4, 4, 4}, scheduler_kind::slurm);
    job.in_steps = true;
    auto const shell_of = [&](engine_command const& command) {
        auto const& argv = command.argv;
        return *std::find_if(argv.begin(), argv.end(), [](auto const& word) { return word.starts_with("--shell="); });
    };
    auto const command = remote_command_line(job, with_srun.sources());
    EXPECT_EQ(std::count(command.argv.begin(), command.argv.end(), "--in-steps"), 1);
    EXPECT_EQ(std::count(command.argv.begin(), command.argv.end(), "--at-once"), 0);
    for (auto const* word : {" --ntasks=1", " --nodes=1", " --overlap", " --input=all", " --gres=gpu:4"})
        EXPECT_NE(shell_of(command).find(word), std::string::npos) << word << " in " << shell_of(command);
    for (auto const* word : {"nodelist", "shim"}) EXPECT_EQ(shell_of(command).find(word), std::string::npos) << shell_of(command);
    EXPECT_EQ(command.files.size(), 1u) << "the hosts";
    job.given.nodes[2].gpus = 2;
    EXPECT_EQ(shell_of(remote_command_line(job, with_srun.sources())).find("--gres"), std::string::npos)
        << "one number would be wrong for some";
    job.probe = true;
    auto const probe = remote_command_line(job, with_srun.sources()).argv;
    EXPECT_EQ(std::count(probe.begin(), probe.end(), "--at-once"), 1);
}

}  // namespace
}  // namespace muster
