#include "launch/site_tools/cluster_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "launch/site/site.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string facts_fixture(std::string const& name) {
    std::ifstream file(std::string(MUSTER_FIXTURES "/site_init/") + name);
    return {std::istreambuf_iterator<char>(file), {}};
}

std::string const config =
    "Configuration data as of 2026-11-22\nAccountingStorageEnforce = associations,limits\nClusterName             = Big One\n";

TEST(slurm_facts, partitions_and_shapes) {
    auto const facts = read_slurm_facts(
        "gpu*|2-00:00:00|1-16|20|128|2|64|1|gpu:a100:4(S:0-1),nvme:1\n"
        "gpu*|2-00:00:00|1-16|4|128|2|64|1|gpu:h100:8\n"
        "cpu|infinite|1-infinite|100|128|2|32|2|(null)\n"
        "debug|30:00|1-2|20|128|2|64|1|gpu:a100:4(S:0-1),nvme:1\n"
        "a line of something else\n",
        config);
    EXPECT_EQ(facts.name, "Big One");
    EXPECT_EQ(facts.account_required, true);
    ASSERT_EQ(facts.shapes.size(), 3u);
    EXPECT_EQ(facts.shapes[0], (node_facts{20, 4, "a100", 128, 128}));
    EXPECT_EQ(facts.shapes[1], (node_facts{4, 8, "h100", 128, 128}));
    EXPECT_EQ(facts.shapes[2], (node_facts{100, 0, "", 64, 128}));
    EXPECT_THAT(facts.queues, ElementsAre(queue_facts{"gpu", true, 16, duration(172800), false},
                                          queue_facts{"cpu", false, 100, std::nullopt, true},
                                          queue_facts{"debug", false, 2, duration(1800), false}));
}

TEST(slurm_facts, a_node_in_several_partitions_counts_once) {
    auto const facts = read_slurm_facts(
        "a*|1:00:00|1-infinite|6|64|2|32|1|gpu:4|n[01-06]\n"
        "b|1:00:00|1-infinite|6|64|2|32|1|gpu:4|n[05-08,10],m1\n"
        "c|1:00:00|1-infinite|2|64|2|32|1|(null)|m2,n]\n",
        config);
    EXPECT_THAT(facts.shapes, ElementsAre(node_facts{10, 4, "", 64, 64}, node_facts{2, 0, "", 64, 64}));
}

TEST(slurm_facts, a_partition_with_other_nodes_says_what_they_have) {
    auto const facts = read_slurm_facts(
        "main*|1-00:00:00|1-infinite|4|8|1|8|1|gpu:4|g[1-4]\n"
        "main*|1-00:00:00|1-infinite|8|16|1|16|1|(null)|c[1-8]\n"
        "gpu|1-00:00:00|1-infinite|4|8|1|8|1|gpu:4|g[1-4]\n"
        "cpu|1-00:00:00|1-infinite|8|16|1|16|1|(null)|c[1-8]\n",
        config);
    auto const text = site_file_text(facts, "hetero", "2026-11-27");
    auto const read = parse_site(text, "hetero.toml");
    EXPECT_EQ(read.node.gpus, 4);
    EXPECT_EQ(read.queues.at(0).limits.max_nodes, 12) << text;
    EXPECT_EQ(read.queues.at(0).max_gpu_nodes, 4) << text;
    EXPECT_EQ(read.queues.at(0).gpus, std::nullopt) << text;
    EXPECT_EQ(read.queues.at(1).max_gpu_nodes, std::nullopt) << text;
    EXPECT_EQ(read.queues.at(2).gpus, 0) << text;
    EXPECT_EQ(read.queues.at(2).cores, 16) << text;
    EXPECT_EQ(read.queues.at(2).cpus, 16) << text;
}

TEST(slurm_facts, a_partition_that_is_down_or_for_others_is_no_queue) {
    auto const read = [](std::vector<std::string> const& accounts) {
        auto facts = read_slurm_facts(
            "old*|1:00:00|1-infinite|2|8|1|8|1|gpu:4|n[1-2]\nmain|1:00:00|1-infinite|2|8|1|8|1|gpu:4|n[1-2]\n"
            "priv|1:00:00|1-infinite|2|8|1|8|1|gpu:4|n[1-2]\nroots|1:00:00|1-infinite|2|8|1|8|1|gpu:4|n[1-2]\n",
            config);
        facts.accounts = accounts;
        read_partitions(
            "PartitionName=main AllowGroups=ALL AllowAccounts=ALL RootOnly=NO State=UP TotalCPUs=16\n"
            "PartitionName=old AllowGroups=ALL AllowAccounts=ALL RootOnly=NO State=DOWN TotalCPUs=16\n"
            "PartitionName=priv AllowGroups=ALL AllowAccounts=phys,bio RootOnly=NO State=UP TotalCPUs=16\n"
            "PartitionName=roots AllowGroups=ALL AllowAccounts=ALL RootOnly=YES State=UP TotalCPUs=16\n"
            "PartitionName=unseen State=UP\n\n",
            facts);
        return site_file_text(facts, "s", "2026-11-27");
    };
    auto const text = read({"chem"});
    EXPECT_EQ(parse_site(text, "s.toml").queues.size(), 1u) << text;
    EXPECT_EQ(parse_site(text, "s.toml").header.default_queue, "") << "it is down";
    EXPECT_THAT(text, AllOf(HasSubstr("# The queue \"old\" runs no jobs now: its state is DOWN."),
                            HasSubstr("# The queue \"priv\" takes jobs of the accounts phys, bio alone, and yours are chem."),
                            HasSubstr("# The queue \"roots\" takes jobs of root alone.")));
    auto const own = parse_site(read({"bio"}), "s.toml");
    ASSERT_EQ(own.queues.size(), 2u);
    EXPECT_THAT(own.queues[1].accounts, ElementsAre("phys", "bio"));
}

TEST(slurm_facts, a_strange_field_loses_no_row) {
    auto const facts = read_slurm_facts(
        "a|n/a|?|2||||||\n"
        "b|1:00:00|1-2K|2K|64|2|32|1|gpu:a100|n[1-2]|a new column|another\n"
        "c|1:00:00|1-4|4\n"
        "d|UNLIMITED|1-infinite|3|64+|2+|32+|1+|gres/gpu:h100:0(S:0),gpu:tesla:0(IDX:N/A)|(null)\n",
        "TaskPlugin = (null)\n");
    ASSERT_EQ(facts.queues.size(), 4u);
    EXPECT_EQ(facts.queues[1].max_nodes, 2048);
    EXPECT_EQ(facts.queues[2].max_nodes, 4);
    EXPECT_EQ(facts.shapes.front().gpus, 1) << "gpu:a100 is one";
    EXPECT_EQ(facts.shapes.front().gpu_model, "a100");
}

TEST(slurm_facts, of_nothing) {
    auto const facts = read_slurm_facts("", "");
    EXPECT_TRUE(facts.queues.empty());
    EXPECT_TRUE(facts.shapes.empty());
    EXPECT_FALSE(facts.account_required);
}

TEST(pbs_facts, of_a_real_server) {
    auto const facts = read_pbs_facts(facts_fixture("pbsnodes-a.json"), facts_fixture("qmgr-print-server.txt"));
    EXPECT_EQ(facts.name, "pbshead");
    EXPECT_THAT(facts.shapes, ElementsAre(node_facts{4, 4, "", std::nullopt, 8}));
    EXPECT_THAT(facts.queues, ElementsAre(queue_facts{"workq", true, std::nullopt, std::nullopt, true}))
        << "no limit of queue or server";
    auto const limited = read_pbs_facts("{}",
                                        "set queue a resources_max.walltime = 24:00:00\nset queue a resources_max.nodect = 10\n"
                                        "set server default_queue = b\n");
    EXPECT_THAT(limited.queues, ElementsAre(queue_facts{"a", false, 10, duration(86400), false}));
    EXPECT_THROW(read_pbs_facts("no JSON", ""), error);
}

// As `qmgr -c "print server"` of an OpenPBS 23.06 writes queues.
constexpr char const* queues =
    "create queue closed\nset queue closed queue_type = Execution\nset queue closed resources_max.walltime = 01:00:00\n"
    "set queue closed enabled = False\nset queue closed started = True\ncreate queue new\nset queue new queue_type = Execution\n"
    "create queue small\nset queue small queue_type = Execution\nset queue small from_route_only = True\n"
    "set queue small resources_max.nodect = 2\nset queue small resources_max.walltime = 02:00:00\n"
    "set queue small resources_min.walltime = 00:05:00\nset queue small enabled = True\n"
    "create queue plain\nset queue plain enabled = True\n"
    "create queue prod\nset queue prod queue_type = Route\nset queue prod route_destinations = small\n"
    "set queue prod route_destinations += plain@head\nset queue prod enabled = True\n"
    "set server default_queue = prod\nset server resources_max.walltime = 24:00:00\n";

TEST(pbs_facts, of_routing_and_closed_queues) {
    auto const facts = read_pbs_facts("{}", queues);
    auto const text = site_file_text(facts, "n", "2026-11-23");
    auto const read = parse_site(text, "n.toml");
    ASSERT_EQ(read.queues.size(), 2u) << text;
    EXPECT_EQ(read.header.default_queue, "prod");
    EXPECT_EQ(read.queues[0].name, "plain");
    EXPECT_EQ(read.queues[0].limits.max_walltime, duration(86400)) << "the server's";
    EXPECT_EQ(read.queues[1].name, "prod");
    ASSERT_EQ(read.queues[1].routes.size(), 2u) << text;
    EXPECT_EQ(read.queues[1].routes[0].name, "small");
    EXPECT_EQ(read.queues[1].routes[0].limits.max_nodes, 2);
    EXPECT_EQ(read.queues[1].routes[0].limits.min_walltime, duration(300));
    EXPECT_EQ(read.queues[1].routes[1].name, "plain");
    EXPECT_THAT(text,
                AllOf(HasSubstr("# The queue \"closed\" takes no jobs now."), HasSubstr("# The queue \"new\" takes no jobs now."),
                      HasSubstr("# The queue \"small\" takes jobs of routing queues only.")));
}

TEST(site_file_text, can_be_read_and_says_what_it_does_not_know) {
    auto const slurm =
        read_slurm_facts("main*|infinite|1-infinite|2|8|1|8|1|gpu:4\nold|n/a|1-infinite|0|8|1|8|1|(null)\n", config);
    auto const text = site_file_text(slurm, "big-one", "2026-11-22");
    auto const read = parse_site(text, "big-one.toml");
    EXPECT_EQ(read.node.gpus, 4);
    EXPECT_EQ(read.header.cpus_per_gpu, 2);
    EXPECT_EQ(read.header.default_queue, "main");
    EXPECT_TRUE(read.header.account_required);
    ASSERT_EQ(read.queues.size(), 2u);
    EXPECT_TRUE(read.queues[0].limits.are_known());
    EXPECT_FALSE(read.queues[1].limits.are_known());
    EXPECT_THAT(read.unknown, Not(testing::IsEmpty()));
    EXPECT_THAT(text, AllOf(HasSubstr("# gpu_model = \"?\" # not known"), HasSubstr("# max_walltime = \"?\" # not known")));
}

// As flux-core 0.88.0 printed them, with two queues and with none.
TEST(flux_facts, nodes_and_queues) {
    auto const facts = read_flux_facts("2|4|4\n1|2|2\n0|0|0\n", "pbatch|pbatch*|86400.0|2\npdebug|pdebug|3600.0|1\nwarning\n");
    EXPECT_EQ(facts.scheduler, script_kind::flux);
    EXPECT_THAT(facts.shapes, ElementsAre(node_facts{.count = 3, .gpus = 2, .cores = 2}));
    EXPECT_THAT(facts.queues,
                ElementsAre(queue_facts{.name = "pbatch", .is_default = true, .max_nodes = 2, .max_walltime = duration(86400)},
                            queue_facts{.name = "pdebug", .max_nodes = 1, .max_walltime = duration(3600)}));
    auto const text = site_file_text(facts, "mine", "2026-11-25");
    auto const read = parse_site(text, "mine.toml");
    EXPECT_EQ(read.scheduler, script_kind::flux) << text;
    EXPECT_EQ(read.node.gpus, 2);
    EXPECT_EQ(read.node.cores, 2);
    EXPECT_EQ(read.header.default_queue, "pbatch");
    EXPECT_TRUE(read.queues.at(1).limits.are_known());
}

TEST(flux_facts, without_queues_without_GPUs_and_of_several_shapes) {
    auto const none = read_flux_facts("4|8|0\n", "||inf|inf\n");
    EXPECT_TRUE(none.queues.empty());
    auto const read = parse_site(site_file_text(none, "mine", "2026-11-25"), "mine.toml");
    EXPECT_EQ(read.header.gpus_by, gpu_request::none);
    auto const mixed = read_flux_facts("3|8|4\n", "q|q|inf|inf\n");
    EXPECT_EQ(mixed.shapes.at(0).cores, std::nullopt);
    EXPECT_TRUE(mixed.queues.at(0).unlimited_time);
    EXPECT_EQ(mixed.queues.at(0).max_nodes, std::nullopt);
    EXPECT_THAT(mixed.unknown, testing::Contains(HasSubstr("of several")));
    EXPECT_TRUE(read_flux_facts("", "").shapes.empty());
}

TEST(site_file_text, of_a_cluster_without_GPUs) {
    auto const facts = read_slurm_facts("cpu*|infinite|1-infinite|100|128|2|32|2|(null)|n[001-100]\n", config);
    EXPECT_EQ(facts.shapes.at(0).gpus, 0);
    auto const text = site_file_text(facts, "mine", "2026-11-25");
    auto const read = parse_site(text, "mine.toml");
    EXPECT_EQ(read.node.gpus, 0);
    EXPECT_EQ(read.header.gpus_by, gpu_request::none);
    EXPECT_THAT(text, testing::Not(HasSubstr("# gpu")));
    auto const untold = read_slurm_facts("cpu*|infinite|1-infinite|100|128|2|32|2\n", config);
    EXPECT_EQ(untold.shapes.at(0).gpus, std::nullopt) << "sinfo printed no such column";
    EXPECT_THAT(site_file_text(untold, "mine", "2026-11-25"), HasSubstr("# gpus = ? # not known"));
}

TEST(site_file_text, hostile_names_end_no_text) {
    cluster_facts facts{.scheduler = script_kind::slurm, .source = "a\"\nb", .accounts = {"x\"]\n[settings]\nengine = \"ssh"}};
    facts.queues.push_back({.name = "q\"\nname = \"z"});
    facts.shapes.push_back({.count = 1, .gpus = 1, .gpu_model = "a\\\"\n"});
    auto const read = parse_site(site_file_text(facts, "n", "2026-11-22"), "n.toml");
    EXPECT_TRUE(read.settings.empty());
    EXPECT_TRUE(read.queues.empty());
    EXPECT_EQ(read.node.gpu_model, "a");
}

TEST(site_file_text, without_a_scheduler) {
    cluster_facts facts{.scheduler = script_kind::local, .source = "hwloc"};
    facts.shapes.push_back({.count = 1, .gpus = 0, .cores = 8, .cpus = 16});
    auto const read = parse_site(site_file_text(facts, "here", "2026-11-22"), "here.toml");
    EXPECT_EQ(read.scheduler, script_kind::local);
    EXPECT_EQ(read.node.gpus, 0);
    EXPECT_EQ(read.node.cores, 8);
}

TEST(cluster_facts, accounts_qualities_and_modules_are_named) {
    cluster_facts facts{.scheduler = script_kind::slurm, .source = "sinfo"};
    read_associations("b|normal,high\na|normal\n\n", facts);
    EXPECT_EQ(facts.accounts, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(facts.qualities, (std::vector<std::string>{"high", "normal"}));
    facts.modules = choose_modules(
        "/apps/modules:\ncuda/12.2(default)\nCUDA/11.8\ngcc/13\nopenmpi/\nopenmpi/5.0.3\npython/3.11\ncuda/12.2(default)\n");
    EXPECT_EQ(facts.modules, (std::vector<std::string>{"cuda/12.2", "CUDA/11.8", "openmpi/5.0.3", "python/3.11"}));
    auto const text = site_file_text(facts, "here", "2026-01-31");
    EXPECT_NE(text.find("queue_option = \"qos\" in [header], and --queue NAME): [\"high\", \"normal\"]"), std::string::npos)
        << text;
    EXPECT_NE(text.find("# Modules that there are, among others: [\"cuda/12.2\""), std::string::npos) << text;
    EXPECT_NO_THROW(parse_site(text, "here.toml"));
}

}  // namespace
}  // namespace muster
