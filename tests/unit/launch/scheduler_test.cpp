#include "launch/scheduler/read_allocation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>

#include "base/error.hpp"
#include "launch/commands/commands.hpp"
#include "launch/scheduler/pbs.hpp"
#include "launch/scheduler/slurm/slurm_job.hpp"
#include "launch/system/network.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A job of two nodes, node1 with 4 and node2 with 2 GPUs, and a host file.
struct cluster {
    environment variables;
    std::map<std::string, std::string> files{{"hosts", "x slots=2\ny\n"}};
    int questions = 0;
    std::string answer =
        "JobId=42 EndTime=1795249740 JOB_GRES=gpu:6 Nodes=node1 CPU_IDs=0-7 Mem=0 "
        "GRES=gpu:a100:4(IDX:0-3) Nodes=node2 CPU_IDs=0-7 Mem=0 GRES=gpu:2(IDX:0-1)\n";

    scheduler_sources sources() {
        return {variables,
                [this](std::string const& path) {
                    auto const found = files.find(path);
                    return found == files.end() ? std::nullopt : std::optional(found->second);
                },
                [this](std::vector<std::string> const&) {
                    ++questions;
                    return command_output{0, answer, ""};
                },
                [] {
                    return node{"here", "127.0.0.1", 2, 0, 2};
                }};
    }
    allocation read(allocation_choice const& choice, std::vector<std::string>* tried = nullptr) {
        return read_allocation(sources(), choice, tried);
    }
    std::string failure(allocation_choice const& choice) {
        try {
            read(choice);
        } catch (error const& e) {
            return e.what();
        }
        return "";
    }
};

cluster small_slurm_job() {
    return {{{"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NODELIST", "node[1-2]"}, {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"}}};
}

TEST(read_allocation, gpus_of_other_nodes_are_not_guessed_where_tasks_differ) {
    environment variables{
        {"SLURM_JOB_ID", "42"},    {"SLURM_JOB_NODELIST", "n[1-3]"},       {"SLURM_JOB_CPUS_PER_NODE", "4,1(x2)"},
        {"SLURM_STEP_ID", "0"},    {"SLURM_STEP_NODELIST", "n[1-3]"},      {"SLURM_STEP_TASKS_PER_NODE", "4,1(x2)"},
        {"SLURMD_NODENAME", "n1"}, {"SLURMD_TRES_BIND", "gpu:per_task:1"}, {"SLURM_GPUS_ON_NODE", "4"}};
    auto const gpus = [&] {
        scheduler_sources const no_answers{variables, [](auto const&) { return std::nullopt; },
                                           [](auto const&) {
                                               return command_output{1, "", ""};
                                           },
                                           [] { return node{}; }};
        std::vector<std::optional<int>> found;
        for (auto const& n : read_allocation(no_answers, {}).nodes) found.push_back(n.gpus);
        return found;
    };
    EXPECT_THAT(gpus(), ElementsAre(4, std::nullopt, std::nullopt));
    variables.set("SLURM_STEP_TASKS_PER_NODE", "4(x3)");
    EXPECT_THAT(gpus(), ElementsAre(4, 4, 4));
    // As a task of another node sees it.
    variables.set("SLURM_STEP_TASKS_PER_NODE", "4,1(x2)");
    variables.set("SLURMD_NODENAME", "n2");
    variables.set("SLURM_NODEID", "1");
    variables.set("SLURM_GPUS_ON_NODE", "1");
    variables.unset("SLURMD_TRES_BIND");
    EXPECT_THAT(gpus(), ElementsAre(std::nullopt, 1, std::nullopt));
}

TEST(read_allocation, gpus_by_task_are_not_taken_for_gpus_by_node) {
    auto const guess = [](std::string const& name, std::string const& value) {
        environment variables{{"SLURM_JOB_ID", "42"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_GPUS_ON_NODE", "4"}};
        variables.set(name, value);
        scheduler_sources const no_answers{variables, [](auto const&) { return std::nullopt; },
                                           [](auto const&) {
                                               return command_output{1, "", ""};
                                           },
                                           [] { return node{}; }};
        return read_allocation(no_answers, {}).nodes.at(0).gpus;
    };
    EXPECT_EQ(guess("SLURM_GPUS_PER_TASK", "1"), std::nullopt);
    EXPECT_EQ(guess("SLURM_TRES_PER_TASK", "gres/gpu:1"), std::nullopt) << "23.11";
    EXPECT_EQ(guess("SLURM_TRES_PER_TASK", "cpu=2,gres/gpu=1"), std::nullopt) << "later";
    EXPECT_EQ(guess("SLURM_TRES_BIND", "gres/gpu:per_task:1"), std::nullopt);
    EXPECT_EQ(guess("SLURM_TRES_PER_TASK", "cpu=2"), 4);
    EXPECT_EQ(guess("SLURM_TRES_BIND", "gres/gpu:single:1"), 4);
}

std::vector<std::string> names_of(allocation const& a) {
    std::vector<std::string> names;
    for (auto const& n : a.nodes) names.push_back(n.name);
    return names;
}

TEST(schedulers, this_node_if_there_is_no_job) {
    std::vector<std::string> tried;
    auto const given = cluster{}.read({}, &tried);
    EXPECT_EQ(given, (allocation{scheduler_kind::local, "", {{"here", "127.0.0.1", 2, 0, 2}}, std::nullopt, false}));
    EXPECT_THAT(tried, ElementsAre("hostfile: neither --hostfile nor -H is given", "slurm: SLURM_JOB_ID is not set",
                                   "pbs: PBS_JOBID is not set", "cobalt: COBALT_JOBID is not set", "lsf: LSB_JOBID is not set",
                                   "flux: FLUX_URI is not set"));
}

TEST(schedulers, the_job_that_this_is) {
    auto const given = small_slurm_job().read({});
    EXPECT_EQ(given.scheduler, scheduler_kind::slurm);
    EXPECT_EQ(given.job_id, "42");
    EXPECT_TRUE(given.fixed);
    EXPECT_EQ(given.nodes, (std::vector<node>{{"node1", "node1", 8, 4, 8}, {"node2", "node2", 8, 2, 8}}));
    EXPECT_EQ(given.ends_at, std::chrono::system_clock::from_time_t(1795249740));
    EXPECT_EQ(describe(given), "job 42 (slurm): 2 nodes, 6 GPUs, 16 slots");
}

TEST(schedulers, gpus_that_nobody_tells_are_explained_once_for_all_nodes) {
    allocation given{scheduler_kind::slurm, "7", {{"a", "a", 2, 4}, {"b", "b", 2, 0}}};
    EXPECT_EQ(explain_unknown_gpus(given), "");
    for (auto& n : given.nodes) n.gpus.reset();
    EXPECT_EQ(describe(given), "job 7 (slurm): 2 nodes, number of GPUs unknown, 4 slots");
    auto const end =
        ": muster run starts one rank for each slot, and each node finds its own GPUs then; for another number of ranks give -n "
        "or "
        "--ranks-per-node, or ";
    EXPECT_EQ(explain_unknown_gpus(given), std::string("slurm does not say how many GPUs a and 1 other node have") + end +
                                               "--site with a site file that says it ([node] gpus)");
    given.scheduler = scheduler_kind::hostfile;
    given.nodes.pop_back();
    EXPECT_EQ(explain_unknown_gpus(given),
              std::string("the list of hosts does not say how many GPUs a has") + end + "gpus=N for every host of a --hostfile");
    given.nodes.push_back({"b", "b", 2, 3});
    given.job_id.clear();
    EXPECT_EQ(describe(given), "(hostfile): 2 nodes, 3 GPUs known, 4 slots");
    EXPECT_EQ(explain_unknown_gpus(given),
              "the list of hosts does not say how many GPUs a has, as it does of the others, so ranks cannot be counted: give "
              "--slots-per-node N");
}

TEST(schedulers, can_be_forced) {
    EXPECT_EQ(small_slurm_job().read({.scheduler = scheduler_kind::local}).nodes.front().name, "here");
    EXPECT_EQ(small_slurm_job().failure({.scheduler = scheduler_kind::pbs}), "--scheduler pbs: PBS_JOBID is not set");
    EXPECT_EQ(small_slurm_job().failure({.scheduler = scheduler_kind::hostfile}),
              "--scheduler hostfile: neither --hostfile nor -H is given");
}

TEST(schedulers, what_scontrol_says_counts_above_the_variables) {
    auto job = small_slurm_job();
    job.variables.set("SLURM_GPUS_PER_NODE", "a100:2,h100:1");
    job.variables.set("SLURM_JOB_END_TIME", "1795240000");
    auto const given = job.read({});
    EXPECT_EQ(job.questions, 1);
    EXPECT_EQ(given.nodes[1].gpus, 2);
    EXPECT_EQ(given.ends_at, std::chrono::system_clock::from_time_t(1795249740));
}

TEST(hosts_named, outside_of_a_job) {
    auto const given = cluster{}.read({.hosts = "u@a:4,b"});
    EXPECT_EQ(given.scheduler, scheduler_kind::hostfile);
    EXPECT_FALSE(given.fixed);
    EXPECT_EQ(given.nodes, (std::vector<node>{{"u@a", "a", 4, {}, {}, true}, {"b", "b", 1, {}, {}}}));
    EXPECT_EQ(cluster{}.read({.hosts = "localhost:2"}).nodes,
              (std::vector<node>{{short_host_name(), "localhost", 2, {}, {}, true}}))
        << "named as its ranks are";
    EXPECT_EQ(cluster{}.read({.hostfile = "hosts"}).nodes[0].slots, 2);
    EXPECT_EQ(cluster{}.failure({.hostfile = "none"}), "no host file none; check --hostfile");
    EXPECT_THAT(cluster{}.failure({.hostfile = "hosts", .hosts = "a"}), HasSubstr("give one of them"));
    EXPECT_THAT(cluster{}.failure({.scheduler = scheduler_kind::local, .hosts = "a"}),
                HasSubstr("--scheduler local is this node"));
}

TEST(hosts_named, one_host_under_two_names_is_refused) {
    EXPECT_EQ(cluster{}.failure({.hosts = "node1,node2:2,node1.lab"}),
              "node1 and node1.lab are two names of one host, node1; write node1:2 instead of both");
    EXPECT_THAT(cluster{}.failure({.hosts = "a.lab:4,u@A:2"}),
                HasSubstr("a.lab and u@A are two names of one host, A; write a.lab:6"));
    EXPECT_EQ(cluster{}.read({.hosts = "n1.east,n1.west,10.0.0.1,10.0.0.2"}).nodes.size(), 4u);
}

TEST(hosts_named, inside_a_job_choose_among_its_nodes) {
    auto const given = small_slurm_job().read({.hosts = "NODE2.lab.example,node1:2"});
    EXPECT_EQ(given.scheduler, scheduler_kind::slurm);
    EXPECT_TRUE(given.fixed);
    EXPECT_EQ(given.nodes, (std::vector<node>{{"node2", "node2", 8, 2, 8}, {"node1", "node1", 2, 2, 8, true}}));
    EXPECT_EQ(given.narrowed_by, "-H") << "node1 has 4 GPUs";
    EXPECT_EQ(small_slurm_job().read({.hosts = "node1"}).narrowed_by, "-H");
    EXPECT_EQ(small_slurm_job().read({.hosts = "node2,node1"}).narrowed_by, "");
    EXPECT_EQ(small_slurm_job().read({}).narrowed_by, "");
    EXPECT_EQ(small_slurm_job().failure({.hosts = "node1,node7"}),
              "node7 is not in job 42 (slurm), whose nodes are node[1-2]; name some of these, or give --scheduler hostfile to "
              "use hosts "
              "outside the job");
    EXPECT_EQ(small_slurm_job().failure({.hosts = "node1,node1.lab"}),
              "node1 and node1.lab are two names of one host, node1; write node1 instead of both");
    EXPECT_THAT(small_slurm_job().failure({.hosts = "node1.a:1,node1.b:2"}), HasSubstr("write node1.a:3 instead of both"));
    EXPECT_EQ(names_of(small_slurm_job().read({.scheduler = scheduler_kind::hostfile, .hosts = "node7"})),
              std::vector<std::string>{"node7"});
    auto job = small_slurm_job();
    job.files["hosts"] = "node1 gpus=8\n";
    EXPECT_EQ(job.failure({.hostfile = "hosts"}), "gpus=8 on node1: job 42 (slurm) has 4 there; write gpus=4");
}

TEST(hosts_named, hosts_with_the_same_short_name_are_told_apart) {
    cluster c;
    c.variables = {{"PBS_JOBID", "7"}, {"PBS_NODEFILE", "nodes"}};
    c.files["nodes"] = "n1.east\nn1.west\n";
    EXPECT_EQ(names_of(c.read({.hosts = "n1.west"})), std::vector<std::string>{"n1.west"});
}

TEST(hosts_named, where_the_scheduler_counts_no_gpus_the_site_does) {
    cluster c;
    c.variables = {{"PBS_JOBID", "7"}, {"PBS_NODEFILE", "nodes"}};
    c.files["nodes"] = "n1\nn2\n";
    EXPECT_EQ(c.read({.gpus_of_each = 4}).nodes.at(1).gpus, 4);
    EXPECT_EQ(c.read({}).nodes.at(1).gpus, std::nullopt);
    EXPECT_EQ(small_slurm_job().read({.gpus_of_each = 8}).nodes.at(0).gpus, 4) << "Slurm has said 4";
}

TEST(hosts_named, a_site_that_gives_whole_nodes_shares_none) {
    cluster c;
    c.answer = R"json({"Jobs": {"7": {"exec_host": "n1/0+n2/0", "exec_vnode": "(n1:ncpus=1)+(n2:ncpus=1)"}}})json";
    c.variables = {{"PBS_JOBID", "7"}, {"PBS_NODEFILE", "nodes"}};
    c.files["nodes"] = "n1\nn2\n";
    EXPECT_TRUE(c.read({}).shares_nodes);
    EXPECT_FALSE(c.read({.gpus_of_each = 4}).shares_nodes);
}

TEST(read_allocation, a_pbs_job_ends_with_a_node_unless_it_tolerates_that) {
    cluster c;
    c.variables = {{"PBS_JOBID", "7"}, {"PBS_NODEFILE", "nodes"}};
    c.files["nodes"] = "n1\nn2\n";
    auto const ends = [&](std::string const& attribute) {
        c.answer = R"json({"Jobs": {"7": {"exec_host": "n1/0+n2/0")json" + attribute + "}}}";
        return c.read({}).ends_with_node;
    };
    EXPECT_TRUE(ends(""));
    EXPECT_TRUE(ends(R"json(, "tolerate_node_failures": "job_start")json"));
    EXPECT_FALSE(ends(R"json(, "tolerate_node_failures": "all")json"));
    c.answer = "";
    EXPECT_FALSE(c.read({}).ends_with_node) << "qstat does not answer: nothing is known";
}

TEST(read_allocation, a_slurm_job_that_shrank_has_the_nodes_that_are_left) {
    auto const names = [](std::string const& list) {
        auto c = small_slurm_job();
        c.answer = "JobId=42 ReqNodeList=node[1-2] NodeList=" + list +
                   " EndTime=1795249740 Nodes=node1 CPU_IDs=0-7 Mem=0 GRES=gpu:4(IDX:0-3)\n";
        std::string all;
        for (auto const& n : c.read({}).nodes) all += n.name + " ";
        return all;
    };
    EXPECT_EQ(names("node1"), "node1 ");
    EXPECT_EQ(names("node2"), "node2 ");
    for (auto const* same : {"node[1-2]", "(null)", "", "node[", "other", "node[1-3]"})
        EXPECT_EQ(names(same), "node1 node2 ") << same;
}

TEST(read_allocation, says_how_often_pbs_has_started_the_job_again) {
    auto const restarts = [](std::string const& field) {
        cluster c;
        c.answer = R"json({"Jobs": {"7": {"exec_host": "n1/0", )json" + field + R"json("exec_vnode": "(n1:ncpus=1)"}}})json";
        c.variables = {{"PBS_JOBID", "7"}, {"PBS_NODEFILE", "nodes"}};
        c.files["nodes"] = "n1\n";
        return c.read({}).restarts;
    };
    EXPECT_EQ(restarts(R"json("run_count": 3, )json"), 2);
    for (auto const* none : {"", R"json("run_count": 1, )json", R"json("run_count": 0, )json", R"json("run_count": "x", )json"})
        EXPECT_EQ(restarts(none), 0) << none;
}

TEST(scontrol, only_the_job_that_was_asked_for) {
    auto const job = parse_scontrol_job(
        "JobId=9 EndTime=1000 JOB_GRES=gpu:1 Nodes=a CPU_IDs=0 Mem=0 GRES=gpu:1\n"
        "JobId=12 EndTime=900 Nodes=b CPU_IDs=0 Mem=0 GRES=gpu:1\n",
        "9");
    EXPECT_TRUE(job.found && job.asked_gpus);
    EXPECT_EQ(job.gpus, (std::map<std::string, int>{{"a", 1}}));
    EXPECT_EQ(job.ends_at, std::chrono::system_clock::from_time_t(1000));
    EXPECT_FALSE(parse_scontrol_job("slurm_load_jobs error: Invalid job id specified\n", "9").found);
    EXPECT_EQ(parse_scontrol_job("JobId=9 JobName=x JobState=PENDING ReqNodeList=(null) ExcNodeList=n[1-2],n5\n", "9").excluded,
              "n[1-2],n5");
    EXPECT_EQ(parse_scontrol_job("JobId=9 JobName=x JobState=PENDING ExcNodeList=(null)\nJobId=8 ExcNodeList=n1\n", "9").excluded,
              "");
}

TEST(scontrol, a_strange_field_loses_no_node) {
    auto const job = parse_scontrol_job(
        "JobId=9 SLUID=sABC JobName=x EndTime=1000 NewField=(1|2) JOB_GRES=gpu:N/A(?) Nodes=a CPU_IDs=0 Mem=0 "
        "GRES=gpu:99999999999999999999 "
        "Nodes=b[1-2] CPU_IDs=N/A Mem=4294967294 GRES=gpu:2(IDX:0-1) Nodes=c[ CPU_IDs=0 Mem=0 GRES=gpu:1 "
        "Nodes=d CPU_IDs=0 Mem=0 GRES=gres/gpu:a100=3(IDX:0-2) Nodes=e CPU_IDs=0 Mem=0 GRES=\n",
        "9");
    EXPECT_TRUE(job.found && job.asked_gpus);
    EXPECT_EQ(job.gpus, (std::map<std::string, int>{{"b1", 2}, {"b2", 2}, {"d", 3}, {"e", 0}}));
    EXPECT_EQ(job.ends_at, std::chrono::system_clock::from_time_t(1000));
}

TEST(scontrol, components_of_a_heterogeneous_job_are_added_up) {
    auto const job = parse_scontrol_job(
        "JobId=5 HetJobId=5 EndTime=2000 Nodes=a CPU_IDs=0 Mem=0 GRES=gpu:1\n"
        "JobId=6 HetJobId=5 EndTime=1000 Nodes=a,b CPU_IDs=0 Mem=0 GRES=gpu:2\n",
        "5");
    EXPECT_EQ(job.gpus, (std::map<std::string, int>{{"a", 3}, {"b", 2}}));
    EXPECT_EQ(job.ends_at, std::chrono::system_clock::from_time_t(1000));
}

TEST(scontrol, lists_of_resources) {
    EXPECT_EQ(count_gres_gpus("gpu:4(IDX:0-3)", "x"), 4);
    EXPECT_EQ(count_gres_gpus("gpu:a100:2(IDX:0,2),gpu:h100:1,nic:7", "x"), 3);
    EXPECT_EQ(count_gres_gpus("gres:gpu:2", "x"), 2);
    EXPECT_EQ(count_gres_gpus("gres/gpu=4,gres/gpu:a100=2,cpu=8", "x"), 6);
    EXPECT_EQ(count_gres_gpus("gpu", "x"), 1);
    EXPECT_EQ(count_gres_gpus("(null)", "x"), 0);
    EXPECT_EQ(count_gres_gpus("", "x"), 0);
    EXPECT_EQ(count_gres_gpus("shard:8", "x"), 0);
    EXPECT_EQ(count_gres_gpus("4", "x", true), 4);
    EXPECT_EQ(count_gres_gpus("a100:2,h100:1", "x", true), 3);
    EXPECT_THROW(count_gres_gpus("gpu:99999999999999999999", "x"), parse_error);
    EXPECT_TRUE(knows_gpus("Foo = 1\nGresTypes               = nic,gpu\n"));
    EXPECT_FALSE(knows_gpus("GresTypes               = (null)\n"));
}

TEST(qstat, vnodes_and_chunks_of_a_host_are_added_up) {
    EXPECT_EQ(parse_exec_hosts("n1/0*6+n2/0*6+n1/1*2", "(n1:ncpus=6)+(v2[0]:ngpus=2:ncpus=4+v2[1]:ngpus=2)+(n1:ncpus=2)"),
              (std::vector<pbs_host>{{"n1", 0, 8}, {"n2", 4, 4}}));
    EXPECT_EQ(parse_exec_hosts("n1/0+n2/0", "n1:ncpus=1+n2:ncpus=2"), (std::vector<pbs_host>{{"n1", {}, 1}, {"n2", {}, 2}}));
    EXPECT_EQ(parse_exec_hosts("n1/0", ""), (std::vector<pbs_host>{{"n1", {}, {}}}));
}

TEST(qstat, faults_are_shown_with_a_caret) {
    auto const fault = [](std::string_view hosts, std::string_view vnodes) -> std::string {
        try {
            parse_exec_hosts(hosts, vnodes);
        } catch (parse_error const& e) {
            return e.what();
        }
        return "";
    };
    EXPECT_EQ(fault("n1/0", "(n1:ngpus=x)"), "exec_vnode: expected a number behind the '='\n  (n1:ngpus=x)\n      ^");
    EXPECT_THAT(fault("n1/0", "(n1:ngpus=1"), HasSubstr("this '(' is never closed\n  (n1:ngpus=1\n  ^"));
    EXPECT_THAT(fault("n1/0", "(n1:ngpus=1)x"), HasSubstr("expected '+' between two chunks\n  (n1:ngpus=1)x\n              ^"));
    EXPECT_THAT(fault("n1/0+n2/0", "(n1:ngpus=1)"), HasSubstr("1 chunks for the 2 of exec_host=n1/0+n2/0"));
    EXPECT_THAT(fault("n1/0+/0", ""), HasSubstr("expected a host's name\n  n1/0+/0\n       ^"));
    EXPECT_THAT(fault("n1/0+ /0", ""), HasSubstr("this character cannot be part of a host name\n  n1/0+ /0\n       ^"));
    EXPECT_THAT(fault("n[1-2]/0", ""), HasSubstr("this character cannot be part of a host name\n  n[1-2]/0\n   ^"));
}

TEST(qstat, walltimes) {
    EXPECT_EQ(parse_pbs_walltime("90"), std::chrono::seconds{90});
    EXPECT_EQ(parse_pbs_walltime("1:30"), std::chrono::seconds{90});
    EXPECT_EQ(parse_pbs_walltime("100:00:01"), std::chrono::seconds{360001});
    for (auto const* bad : {"", "1:2:3:4", "x", "1:", "-1", "99999999999999"})
        EXPECT_EQ(parse_pbs_walltime(bad), std::nullopt) << bad;
}

TEST(qstat, answers_that_are_none) {
    for (auto const* text :
         {"", "{", "[]", "{\"Jobs\": 3}", "{\"Jobs\": {}}", "{\"Jobs\": {\"7\": {}}}", "qstat: Unknown Job Id"})
        EXPECT_EQ(parse_qstat_job(text, "7"), std::nullopt) << text;
}

TEST(qstat, another_job_is_not_this_one) {
    auto const answer = [](std::string const& id) { return "{\"Jobs\": {\"" + id + "\": {\"exec_host\": \"n1/0\"}}}"; };
    EXPECT_TRUE(parse_qstat_job(answer("7.head.example"), "7.head"));
    EXPECT_TRUE(parse_qstat_job(answer("7[2].head"), "7[2]"));
    EXPECT_EQ(parse_qstat_job(answer("8.head"), "7.head"), std::nullopt);
    EXPECT_EQ(parse_qstat_job(answer("7[3].head"), "7[2].head"), std::nullopt);
}

/// What is told where the scheduler's program answers so.
std::vector<std::string> told_of(environment const& variables, command_output const& answer) {
    cluster job{variables, {{"nodes", "n1\nn2\n"}}};
    std::vector<std::string> told;
    auto plain = job.sources();
    plain.run_command = [&answer](auto const&) { return answer; };
    read_allocation(telling_sources(plain, [&told](std::string const& what) { told.push_back(what); }), {});
    return told;
}

TEST(read_allocation, a_job_that_has_ended_is_told) {
    auto const job = small_slurm_job().variables;
    auto const record = [](std::string const& state) {
        return "JobId=42 JobName=x JobState=" + state + " NumNodes=1 Nodes=n1 CPU_IDs=0 Mem=0 GRES=\n";
    };
    EXPECT_THAT(told_of(job, {0, record("COMPLETED"), ""}), testing::Contains(HasSubstr("job 42 (slurm) has ended (COMPLETED)")));
    for (auto const* state : {"RUNNING", "COMPLETING", "SUSPENDED"})
        EXPECT_THAT(told_of(job, {0, record(state), ""}), testing::Not(testing::Contains(HasSubstr("has ended")))) << state;
}

TEST(read_allocation, a_question_without_an_answer_is_told_with_the_reason) {
    environment const pbs{{"PBS_JOBID", "7.head"}, {"PBS_NODEFILE", "nodes"}};
    auto const guessed = HasSubstr("what it would have told is guessed, or left open");
    for (auto const* garbage :
         {"", "qstat: ?", "{\"Jobs\": {\"7.head\": {", "{\"Jobs\": {\"8.head\": {\"exec_host\": \"n1/0\"}}}"})
        EXPECT_THAT(told_of(pbs, {0, garbage, ""}),
                    ElementsAre(AllOf(HasSubstr("qstat -f -F json 7.head failed"), HasSubstr("nothing of this job"), guessed)))
            << garbage;
    EXPECT_THAT(told_of(pbs, {1, "", "cannot connect to server\n"}), ElementsAre(HasSubstr("code 1: cannot connect to server")));
    EXPECT_THAT(told_of(pbs, {128 + SIGKILL, "", "", command_limit}), ElementsAre(HasSubstr("did not answer within 10 s")));
    EXPECT_THAT(told_of(pbs, {127, "", ""}), testing::IsEmpty());  // there is no such program
    auto const job = small_slurm_job().variables;
    EXPECT_THAT(told_of(job, {0, "slurm_load_jobs error", ""}), testing::Contains(AllOf(HasSubstr("show job 42"), guessed)));
    EXPECT_THAT(told_of(job, small_slurm_job().sources().run_command({})), testing::IsEmpty());
}

TEST(read_allocation, a_pbs_host_in_two_forms_keeps_its_gpus) {
    cluster job{{{"PBS_JOBID", "7.head"}, {"PBS_NODEFILE", "nodes"}}, {{"nodes", "n1\nn1.lab.example\nn2\n"}}};
    auto sources = job.sources();
    sources.run_command = [](auto const&) {
        std::string const answer =
            "{\"Jobs\": {\"7.head\": {\"exec_host\": \"n1/0*2+n2/0\", "
            "\"exec_vnode\": \"(n1:ngpus=2)+(n2:ngpus=1)\"}}}";
        return command_output{0, answer, ""};
    };
    auto const nodes = read_allocation(sources, {}).nodes;
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_EQ(nodes[0], (node{"n1", "n1", 2, 2, {}}));
    EXPECT_EQ(nodes[1].gpus, 1);
}

TEST(read_allocation, a_slurm_list_has_as_many_nodes_as_are_said) {
    auto job = small_slurm_job();
    job.variables.set("SLURM_JOB_NUM_NODES", "3");
    EXPECT_EQ(job.failure({}),
              "job 42 (slurm): SLURM_JOB_NUM_NODES=3, but SLURM_JOB_NODELIST=node[1-2] names 2; set both to the "
              "nodes to be used, or choose among the job's nodes with -H");
    job.variables.set("SLURM_JOB_NUM_NODES", "2");
    EXPECT_EQ(job.failure({}), "");
}

TEST(hosts_formats, are_what_other_programs_read) {
    allocation a{scheduler_kind::slurm, "42", {{"n1", "n1", 8, 2, 8}, {"n2", "n2", 8, 0, 8}, {"n3", "n3", 8, 1, 8}}, {}, true};
    EXPECT_EQ(hosts_hostfile(a), "n1 slots=2\nn3 slots=1\n");
    EXPECT_EQ(hosts_pbs(a), "n1\nn1\nn3\n");
    EXPECT_EQ(hosts_slurm(a), "n[1-3]\n");
    EXPECT_THAT(hosts_table(a), HasSubstr("n2    0     8      8"));
    for (auto& n : a.nodes) n.gpus.reset();
    EXPECT_EQ(hosts_hostfile(a), "n1 slots=8\nn2 slots=8\nn3 slots=8\n");
    EXPECT_THAT(hosts_table(a), HasSubstr("n2    ?     8      8"));
}

}  // namespace
}  // namespace muster
