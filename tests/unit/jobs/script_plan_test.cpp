#include "launch/scripts/script_command.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "base/error.hpp"
#include "launch/scripts/script_plan.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

site shipped_site(std::string const& name) {
    return load_site(name, {MUSTER_SOURCE_DIR "/site-configs"});
}

script_options options(int gpus, double hours, std::string queue = "", std::string account = "p") {
    script_options o;
    o.gpus = gpus;
    o.walltime = duration(hours * 3600);
    o.queue = std::move(queue);
    o.account = std::move(account);
    o.command = {"x"};
    return o;
}

std::string refusal(std::string const& where, script_options const& o) {
    try {
        plan_script(shipped_site(where), o);
    } catch (error const& e) {
        EXPECT_EQ(exit_code(e.code()), 2);
        return e.what();
    }
    return {};
}

TEST(plan_script, shape_of_the_job) {
    auto const shape = [](std::string const& where, script_options const& o) {
        auto const request = plan_script(shipped_site(where), o).request;
        return std::array{request.nodes, request.ranks_per_node, request.cpus_per_rank};
    };
    EXPECT_EQ(shape("polaris", options(8, 1, "debug")), (std::array{2, 4, 16}));
    EXPECT_EQ(shape("polaris", options(3, 1, "debug")), (std::array{1, 3, 16}));
    EXPECT_EQ(shape("perlmutter", options(16, 1, "regular")), (std::array{4, 4, 32}));
    EXPECT_EQ(shape("generic-slurm", options(8, 1)), (std::array{1, 8, 0}));
    EXPECT_EQ(shape("generic-pbs", options(8, 1)), (std::array{1, 8, 1}));
    auto divided = options(8, 1);
    divided.gpus_per_node = 4;
    divided.cpus_per_gpu = 6;
    EXPECT_EQ(shape("generic-slurm", divided), (std::array{2, 4, 6}));
    EXPECT_EQ(shape("workstation", options(3, 1)), (std::array{1, 3, 0}));
}

/// Of a node that --spares keeps idle muster run takes nothing: it must be there beside those of the ranks.
TEST(plan_script, spares_are_asked_for) {
    auto const planned = [](std::string const& where, int gpus, int per_node, int spares) {
        auto o = options(gpus, 1, where == "polaris" ? "debug-scaling" : "");
        o.gpus_per_node = per_node;
        o.spares = spares;
        o.outlives_nodes = true;
        return plan_script(shipped_site(where), o);
    };
    auto const over_nodes = planned("generic-slurm", 4, 2, 1);
    EXPECT_THAT(render_script(over_nodes.request, {}),
                AllOf(HasSubstr("#SBATCH --nodes=3\n"), HasSubstr("#SBATCH --ntasks-per-node=2\n"), HasSubstr("--gres=gpu:2\n"),
                      HasSubstr("#SBATCH --no-kill\n"), HasSubstr("run -n 4 ")));
    EXPECT_THAT(over_nodes.notes, Contains("--spares 1: the job asks for 1 node more, which is idle until a node is lost"));
    auto const on_one = planned("generic-slurm", 2, 4, 1);
    EXPECT_THAT(render_script(on_one.request, {}),
                AllOf(HasSubstr("--nodes=1\n"), HasSubstr("--gres=gpu:3\n"), HasSubstr("run -n 2 "), Not(HasSubstr("no-kill"))));
    EXPECT_THAT(on_one.notes, Contains("--spares 1: the job asks for room for 3 ranks on its node"));
    EXPECT_THAT(render_script(planned("polaris", 4, 4, 1).request, {}),
                AllOf(HasSubstr("select=2:"), HasSubstr("#PBS -W tolerate_node_failures=all\n")))
        << "its node is full";
    EXPECT_THAT(render_script(planned("polaris", 8, 4, 2).request, {}), AllOf(HasSubstr("select=4:"), HasSubstr("run -n 8 ")));
    EXPECT_THAT(planned("generic-slurm", 4, 2, 0).request.directives, Contains("--no-kill")) << "--min-np alone";
    EXPECT_THAT(planned("generic-pbs", 4, 2, 0).request.directives, Contains("-W tolerate_node_failures=all"));
    EXPECT_THAT(planned("generic-pbs", 2, 4, 1).request.directives, Not(Contains("-W tolerate_node_failures=all"))) << "one node";
    auto says_so = options(4, 1);
    says_so.gpus_per_node = 2;
    says_so.outlives_nodes = true;
    says_so.qsub = {"-W block=true,tolerate_node_failures=job_start"};
    EXPECT_THAT(plan_script(shipped_site("generic-pbs"), says_so).request.directives,
                ElementsAre("-W block=true,tolerate_node_failures=job_start"));
}

site site_with(std::string const& scheduler, std::string const& tables) {
    return parse_site("name = \"mix\"\ndescription = \"x\"\nscheduler = \"" + scheduler +
                          "\"\n[source]\nfacts = \"x\"\ndate = 2026-01-31\n" + tables,
                      "mix.toml");
}

std::string refusal(site const& where, script_options const& o) {
    try {
        plan_script(where, o);
    } catch (error const& e) {
        return e.what();
    }
    return {};
}

script_options with_spare(script_options o) {
    o.spares = 1;
    return o;
}

script_options ranks_alone(int ranks, std::string queue = "") {
    auto o = options(0, 1, std::move(queue), "");
    o.ranks = ranks;
    return o;
}

/// Nodes and places for spares of a job.
std::array<int, 2> spares_of(site const& where, script_options const& o) {
    auto const request = plan_script(where, with_spare(o)).request;
    return {request.spare_nodes, request.spare_places};
}

TEST(plan_script, a_spare_that_the_node_has_no_room_for_gets_a_node) {
    constexpr std::array a_node{1, 0}, a_place{0, 1};
    auto const unknown = shipped_site("generic-slurm");
    auto o = options(4, 1);
    EXPECT_EQ(spares_of(unknown, o), a_place);
    o.gpus_per_node = 4;
    EXPECT_EQ(spares_of(unknown, o), a_node) << "--gpus-per-node";
    o = ranks_alone(4);
    EXPECT_EQ(spares_of(unknown, o), a_place);
    o.ranks_per_node = 4;
    EXPECT_EQ(spares_of(unknown, o), a_node) << "--ranks-per-node";

    auto const known = site_with("slurm", "[node]\ngpus = 4\ncores = 32\ncpus = 32\n");
    o = options(3, 1);
    EXPECT_EQ(spares_of(known, o), a_place);
    o.cpus_per_rank = 10;
    EXPECT_EQ(spares_of(known, o), a_node) << "its cores";
    o.cpus_per_rank = 8;
    EXPECT_EQ(spares_of(known, o), a_place);
    o.cpus_per_rank.reset();
    o.cpus_per_gpu = 10;
    EXPECT_EQ(spares_of(known, o), a_node) << "its hardware threads";
}

TEST(plan_script, a_queue_that_counts_gpus_has_its_own_nodes_and_spares) {
    auto const where = site_with("pbs",
                                 "[node]\ngpus = 4\n[[queue]]\nname = \"big\"\nselect = \"gpus\"\ngpus = 8\n"
                                 "[[queue]]\nname = \"small\"\nselect = \"gpus\"\ngpus = 2\n"
                                 "[[queue]]\nname = \"counted\"\nselect = \"gpus\"\ngpu_counts = [1, 2, 4]\n");
    EXPECT_EQ(refusal(where, options(8, 1, "big")), "");
    EXPECT_THAT(refusal(where, options(4, 1, "small")),
                HasSubstr("queue 'small' of mix gives GPUs of one node, which has 2, not 4"));
    EXPECT_THAT(refusal(where, with_spare(options(2, 1, "counted"))),
                HasSubstr("takes 1, 2, 4 GPUs, not 3 (2 and 1 for --spares); give --gpus and --spares together one of these"));

    auto o = with_spare(options(4, 1, "counted"));  // a node more, whose GPUs are chunks too
    o.check_limits = false;
    o.memory = "64G";
    auto const request = plan_script(where, o).request;
    EXPECT_EQ(request.chunks, 8);
    EXPECT_THAT(request.chunk, HasSubstr("mem=16384mb"));
}

/// In the job [node] would be taken for these nodes too, were it not told.
TEST(plan_script, ranks_in_a_queue_without_gpus_have_slots) {
    auto const where = site_with("pbs", "[node]\ngpus = 4\n[header]\nwhole_nodes = true\n[[queue]]\nname = \"cpu\"\ngpus = 0\n");
    auto const request = plan_script(where, ranks_alone(16, "cpu")).request;
    EXPECT_THAT(request.run_options, testing::ElementsAre("--slots-per-node", "16"));
    EXPECT_TRUE(request.environment.empty());
}

TEST(plan_script, each_queue_is_judged_by_its_own_nodes) {
    auto const limits = std::string("max_walltime = \"2h\"\n");
    auto const where = site_with("slurm", "[node]\ngpus = 4\n[[queue]]\nname = \"main\"\nmax_nodes = 4\n" + limits +
                                              "[[queue]]\nname = \"dense\"\ngpus = 8\nmax_nodes = 6\n" + limits +
                                              "[[queue]]\nname = \"thin\"\ngpus = 1\nmax_nodes = 12\n" + limits +
                                              "[[queue]]\nname = \"odd\"\ngpus = 5\nmax_nodes = 40\n" + limits);
    EXPECT_THAT(refusal(where, options(48, 1, "main")),
                AllOf(HasSubstr("takes at most 4 nodes"), testing::EndsWith("it would fit: dense")));
}

TEST(plan_script, what_a_queue_does_not_say_of_its_cpus) {
    auto const where = [](std::string const& node, std::string const& queue) {
        return site_with("slurm", "[node]\ngpus = 4\n" + node + "[header]\ncpus_per_gpu = 6\n[[queue]]\nname = \"q\"\n" + queue);
    };
    auto const cpus = [](site const& at) { return plan_script(at, options(2, 1, "q")).request.cpus_per_rank; };
    EXPECT_EQ(cpus(where("", "gpus = 8\n")), 6) << "the site's, where no share can be counted";
    EXPECT_EQ(cpus(where("cores = 64\ncpus = 64\n", "gpus = 8\n")), 8) << "a share of the queue's";
    auto const cores_alone = where("", "gpus = 8\ncores = 32\n");
    EXPECT_EQ(cpus(cores_alone), 4);
    EXPECT_THAT(plan_script(cores_alone, options(2, 1, "q")).notes, Not(Contains(HasSubstr("no number of cores"))));
    EXPECT_THAT(plan_script(where("", "cores = 32\n"), ranks_alone(2, "q")).notes, Not(Contains(HasSubstr("has no number of"))));
}

TEST(plan_script, gpus_that_fill_no_whole_nodes) {
    EXPECT_THAT(refusal("polaris", options(9, 1, "debug-scaling")),
                AllOf(HasSubstr("9 GPUs"), HasSubstr("4 GPUs each"), HasSubstr("--gpus 8 (2 nodes)"),
                      HasSubstr("--gpus 12 (3 nodes)"), HasSubstr("--gpus-per-node 3 (3 nodes with 3 each)")));
    EXPECT_THAT(refusal("polaris", options(7, 1, "debug")), Not(HasSubstr("--gpus-per-node")));
    auto o = options(8, 1, "debug");
    o.gpus_per_node = 5;
    EXPECT_THAT(refusal("polaris", o), HasSubstr("has 4 GPUs"));
    o.gpus_per_node = 4;
    o.cpus_per_gpu = 17;
    EXPECT_THAT(refusal("polaris", o), HasSubstr("give at most 16"));
}

TEST(plan_script, limits_of_queues_and_the_ones_that_fit) {
    EXPECT_EQ(refusal("polaris", options(8, 1, "debug")), "");
    EXPECT_THAT(refusal("polaris", options(12, 1, "debug")),
                AllOf(HasSubstr("takes at most 2 nodes"), HasSubstr("debug-scaling")));
    EXPECT_THAT(refusal("polaris", options(8, 1.01, "debug")),
                AllOf(HasSubstr("takes at most 01:00:00"), HasSubstr("preemptable")));
    EXPECT_THAT(refusal("polaris", options(8, 0.01, "debug")), HasSubstr("takes no less than 00:05:00"));
    EXPECT_THAT(refusal("polaris", options(36, 1, "prod")), HasSubstr("takes no fewer than 10 nodes"));
    EXPECT_EQ(refusal("polaris", options(40, 3, "prod")), "");
    EXPECT_THAT(refusal("polaris", options(40, 4, "prod")), AllOf(HasSubstr("sends 10 nodes to 'small'"), HasSubstr("03:00:00")));
    EXPECT_EQ(refusal("polaris", options(100, 6, "prod")), "");
    EXPECT_THAT(refusal("polaris", options(396, 7, "prod")), HasSubstr("'medium'"));
    EXPECT_EQ(refusal("polaris", options(400, 24, "prod")), "");
    EXPECT_THAT(refusal("polaris", options(1988, 24, "prod")),
                AllOf(HasSubstr("at most 496"), HasSubstr("no queue of the site")));
    EXPECT_THAT(refusal("polaris", options(8, 1, "debgu")), AllOf(HasSubstr("did you mean 'debug'?"), HasSubstr("--no-limits")));
    auto o = options(12, 1, "debug");
    o.check_limits = false;
    EXPECT_EQ(refusal("polaris", o), "");
}

TEST(plan_script, chunks_that_are_gpus_are_a_rank_each) {
    auto asked = options(16, 1, "by-gpu");
    asked.check_limits = false;
    EXPECT_EQ(plan_script(shipped_site("sophia"), asked).request.chunks, 16);
    EXPECT_EQ(plan_script(shipped_site("sophia"), options(4, 1, "by-gpu")).request.chunks, 4);
}

TEST(plan_script, words_for_containers_may_be_none_or_not_known) {
    auto asked = options(1, 1);
    asked.container = "x.sif";
    site where = shipped_site("generic-pbs");
    EXPECT_EQ(plan_script(where, asked).request.container.options, (std::vector<std::string>{"--nv"}));
    where.container_args.emplace();
    EXPECT_TRUE(plan_script(where, asked).request.container.options.empty());
    where.container_args = {"--rocm"};
    EXPECT_EQ(plan_script(where, asked).request.container.options, (std::vector<std::string>{"--rocm"}));
}

TEST(plan_script, what_the_site_wants) {
    EXPECT_THAT(refusal("polaris", options(8, 1)), AllOf(HasSubstr("needs a queue"), HasSubstr("debug, debug-scaling")));
    EXPECT_THAT(refusal("polaris", options(8, 1, "debug", "")), HasSubstr("--account"));
    EXPECT_THAT(refusal("perlmutter", options(8, 1, "debug", "")), HasSubstr("PROJECT_g"));
    auto o = options(8, 1, "debug");
    o.walltime.reset();
    EXPECT_THAT(refusal("polaris", o), HasSubstr("--time"));
    EXPECT_EQ(refusal("workstation", o), "");
    o = options(8, 1, "debug");
    o.constraint = "x";
    EXPECT_THAT(refusal("polaris", o), HasSubstr("for Slurm"));
    o = options(8, 1, "debug");
    o.filesystems = "x";
    EXPECT_THAT(refusal("perlmutter", o), HasSubstr("for PBS"));
}

TEST(plan_script, network_variables_only_on_several_nodes_and_not_if_unwanted) {
    auto const names = [](script_options const& o) {
        std::string all;
        for (auto const& [name, value] : plan_script(shipped_site("polaris"), o).request.environment) all += name + " ";
        return all;
    };
    EXPECT_THAT(names(options(8, 1, "debug")), AllOf(HasSubstr("NCCL_NET "), HasSubstr("TMPDIR")));
    EXPECT_THAT(names(options(4, 1, "debug")), AllOf(Not(HasSubstr("NCCL")), HasSubstr("TMPDIR")));
    auto without = options(8, 1, "debug");
    without.network_environment = false;
    EXPECT_THAT(names(without), AllOf(Not(HasSubstr("NCCL")), Not(HasSubstr("FI_")), HasSubstr("TMPDIR")));
}

TEST(plan_script, a_program_that_starts_muster_run_itself_gets_variables_in_place_of_options) {
    auto o = options(8, 0.5, "debug");
    o.site = "polaris";
    o.once = true;
    o.early_signal = "USR1@60";
    o.environment = {{"MUSTER_SITE", "mine"}};
    auto request = plan_script(shipped_site("polaris"), o).request;
    hand_to_runs(request, {"--bind-to", "numa", "--no-smt", "--tag-output"});
    EXPECT_TRUE(request.once);
    EXPECT_TRUE(request.run_options.empty());
    std::map<std::string, std::string> seen;  // the last one of a name holds
    for (auto const& [name, value] : request.environment) seen[name] = value;
    EXPECT_EQ(seen["MUSTER_SIGNAL_BEFORE_END"], "USR1@60");
    EXPECT_EQ(seen["MUSTER_BIND_TO"], "numa");
    EXPECT_EQ(seen["MUSTER_SMT"], "false");
    EXPECT_EQ(seen["MUSTER_TAG_OUTPUT"], "true");
    EXPECT_EQ(seen["MUSTER_SITE"], "mine") << "the user's own value";
    auto const script = render_script(request, "");
    EXPECT_THAT(script, AllOf(HasSubstr("\nexec x </dev/null\n"), Not(HasSubstr("muster run -n"))));
    o.chain = 2;
    EXPECT_THAT(refusal("polaris", o), HasSubstr("--once does not go with"));
}

TEST(plan_script, a_site_without_GPUs_has_ranks) {
    auto where = shipped_site("generic-slurm");
    where.node.gpus = 0;
    where.node.cores = where.node.cpus = 8;
    auto o = options(4, 1);
    try {
        plan_script(where, o);
        ADD_FAILURE() << "not refused";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), AllOf(HasSubstr("has no GPU"), HasSubstr("--ranks 4")));
    }
    o.gpus = 0;
    o.ranks = 16;
    auto const request = plan_script(where, o).request;
    EXPECT_EQ(request.nodes, 2);
    EXPECT_TRUE(request.environment.empty()) << "no GPU to be hidden";
    o.ranks = 0;
    o.sweep = {1, 2, 8};
    EXPECT_EQ(plan_script(where, o).request.ranks_per_node, 8) << "a sweep of ranks";
    EXPECT_FALSE(plan_script(where, o).request.with_gpus);
    o.sweep = {1, 9};
    try {
        plan_script(where, o);
        ADD_FAILURE() << "not refused";
    } catch (error const& e) {
        EXPECT_THAT(e.what(), HasSubstr("use --sweep …,8, or --sweep …,10"));
    }
    o.gpus_per_node = 4;
    EXPECT_THROW(plan_script(where, o), error);
}

TEST(plan_script, a_partition_is_no_quality_of_service) {
    auto o = options(4, 1, "low");
    o.queue_word = "--qos";
    EXPECT_THAT(refusal("generic-slurm", o), HasSubstr("write --sbatch '--qos=low'"));
    o.queue_word = "--partition";
    EXPECT_EQ(refusal("generic-slurm", o), "");
    EXPECT_THAT(refusal("perlmutter", o), HasSubstr("write --sbatch '--partition=low'"));
}

TEST(plan_script, own_constraint_and_filesystems) {
    auto o = options(8, 1, "debug");
    o.filesystems = "home:grand";
    EXPECT_EQ(plan_script(shipped_site("polaris"), o).request.filesystems, "home:grand");
    o.filesystems.clear();
    o.constraint = "gpu&hbm80g";
    EXPECT_EQ(plan_script(shipped_site("perlmutter"), o).request.constraint, "gpu&hbm80g");
}

TEST(plan_script, memory) {
    auto o = options(8, 1, "debug");
    o.memory = "64G";
    EXPECT_THAT(plan_script(shipped_site("perlmutter"), o).request.directives, Contains("--mem=65536M"));
    EXPECT_THAT(plan_script(shipped_site("polaris"), o).request.chunk, HasSubstr(":mem=65536mb"));
    for (auto const* const same : {"64GB", "64gb", "64g", "64GiB", "65536MB", "65536m"}) {
        o.memory = same;
        EXPECT_THAT(plan_script(shipped_site("perlmutter"), o).request.directives, Contains("--mem=65536M")) << same;
        EXPECT_THAT(plan_script(shipped_site("polaris"), o).request.chunk, HasSubstr(":mem=65536mb")) << same;
    }
    o.memory = "all";
    EXPECT_THAT(plan_script(shipped_site("perlmutter"), o).request.directives, Contains("--mem=0"));
    EXPECT_THAT(refusal("polaris", o), HasSubstr("--mem all is for Slurm"));
    o.memory = "64";
    EXPECT_THAT(refusal("perlmutter", o), HasSubstr("'64' has no unit; write 64M or 64G"));
    o.memory = "much";
    EXPECT_THAT(refusal("perlmutter", o), HasSubstr("--mem"));
}

TEST(plan_script, own_directives_are_for_one_scheduler) {
    auto o = options(8, 1, "debug");
    o.sbatch = {"--exclusive", "#SBATCH --mail-user=a@b"};
    o.qsub = {"-m abe"};
    auto const slurm = plan_script(shipped_site("perlmutter"), o);
    EXPECT_THAT(slurm.request.directives, AllOf(Contains("--exclusive"), Contains("--mail-user=a@b"), Not(Contains("-m abe"))));
    EXPECT_THAT(slurm.notes, Contains(HasSubstr("--qsub is left out")));
    EXPECT_THAT(plan_script(shipped_site("polaris"), o).request.directives,
                AllOf(Contains("-m abe"), Not(Contains("--exclusive"))));
    o.sbatch = {"exclusive"};
    EXPECT_THAT(refusal("perlmutter", o), HasSubstr("a directive begins with '-'"));
    o.places = {{"sbatch", "job.toml:3"}};
    EXPECT_THAT(refusal("perlmutter", o), StartsWith("job.toml:3: --sbatch"));
    o.sbatch = {"--x\nrm -rf /"};
    EXPECT_THAT(refusal("perlmutter", o), HasSubstr("--sbatch"));
}

TEST(plan_script, a_queue_may_have_other_nodes_and_be_of_some_accounts) {
    auto const hetero = parse_site(
        "name = \"hetero\"\ndescription = \"x\"\nscheduler = \"slurm\"\n[source]\nfacts = \"x\"\ndate = 2026-01-31\n"
        "[node]\ngpus = 4\ncores = 8\ncpus = 8\n[header]\ncpus_per_gpu = 2\ndefault_queue = \"main\"\n"
        "[[queue]]\nname = \"main\"\nmax_nodes = 12\nmax_walltime = \"1h\"\nmax_gpu_nodes = 4\n"
        "[[queue]]\nname = \"cpu\"\nmax_nodes = 8\nmax_walltime = \"1h\"\ngpus = 0\ncores = 16\ncpus = 16\n"
        "[[queue]]\nname = \"priv\"\nmax_nodes = 16\nmax_walltime = \"1h\"\naccounts = [\"phys\"]\n",
        "hetero.toml");
    auto const why = [&](script_options const& asked) {
        try {
            plan_script(hetero, asked);
        } catch (error const& e) {
            return std::string(e.what());
        }
        return std::string("no error");
    };
    script_options ranks;
    ranks.walltime = duration(60);
    ranks.ranks = 16;
    ranks.ranks_per_node = 16;
    EXPECT_THAT(why(ranks), HasSubstr("a node of hetero has room for 8"));
    ranks.queue = "cpu";
    auto const planned = plan_script(hetero, ranks).request;
    EXPECT_EQ(planned.nodes, 1);
    EXPECT_EQ(planned.ranks_per_node, 16);
    EXPECT_EQ(planned.environment.size(), 0u) << "its nodes have no GPU to hide";
    ranks.ranks_per_node = 32;
    EXPECT_THAT(why(ranks), HasSubstr("a node of queue 'cpu' of hetero has room for 16"));

    auto gpus = options(4, 1, "cpu");
    gpus.account.clear();
    EXPECT_THAT(why(gpus), HasSubstr("--gpus 4: a node of queue 'cpu' of hetero has no GPU"));
    gpus.gpus = 48;
    gpus.queue.clear();
    EXPECT_THAT(why(gpus), HasSubstr("12 nodes for 01:00:00 does not fit queue 'main' of hetero, which has 4 nodes with GPUs; it "
                                     "would fit: priv (account phys)"));
    gpus.account = "chem";
    EXPECT_THAT(why(gpus), HasSubstr("it would fit no queue of the site"));
    gpus.queue = "priv";
    EXPECT_THAT(why(gpus), HasSubstr("which takes jobs of the account phys alone"));
    gpus.gpus = 16;
    gpus.queue.clear();
    EXPECT_EQ(plan_script(hetero, gpus).request.nodes, 4);
}

TEST(parse_script_options, everything) {
    auto const o = parse_script_options({"--site",      "s",
                                         "--gpus=8",    "--time",
                                         "1:30:00",     "--account",
                                         "a",           "--queue",
                                         "q",           "--job-name",
                                         "j",           "--gpus-per-node",
                                         "4",           "--cpus-per-gpu",
                                         "8",           "--constraint",
                                         "c",           "--filesystems",
                                         "f",           "--no-network-env",
                                         "--no-limits", "--muster",
                                         "m",           "--template",
                                         "t",           "--",
                                         "prog",        "--site",
                                         "--",          ""});
    script_options wanted;
    wanted.site = "s";
    wanted.gpus = 8;
    wanted.walltime = duration(5400);
    wanted.account = "a";
    wanted.queue = "q";
    wanted.queue_word = "--queue";
    wanted.job_name = "j";
    wanted.gpus_per_node = 4;
    wanted.cpus_per_gpu = 8;
    wanted.constraint = "c";
    wanted.filesystems = "f";
    wanted.network_environment = false;
    wanted.check_limits = false;
    wanted.muster = "m";
    wanted.template_file = "t";
    wanted.command = {"prog", "--site", "--", ""};
    EXPECT_EQ(o, wanted);
    EXPECT_TRUE(parse_script_options({"--help"}).help);
}

TEST(parse_script_options, what_is_wrong) {
    auto const refused = [](std::vector<std::string> args, std::string const& message) {
        try {
            parse_script_options(args);
            ADD_FAILURE() << message;
        } catch (error const& e) {
            EXPECT_THAT(e.what(), HasSubstr(message));
            EXPECT_EQ(exit_code(e.code()), 2);
        }
    };
    refused({}, "--site");
    refused({"--site", "s"}, "--gpus");
    refused({"--site", "s", "--gpus", "0", "--", "x"}, "from 1 to");
    refused({"--site", "s", "--gpus", "2.5", "--", "x"}, "from 1 to");
    refused({"--site", "s", "--gpus", "2", "--time", "90", "--", "x"}, "90min, 90h or HH:MM:SS");
    refused({"--site", "s", "--gpus", "2", "--time", "soon", "--", "x"}, "--time");
    refused({"--site", "s", "--gpus", "2", "--time", "1h"}, "the program is missing");
    refused({"--site", "s", "--gpus", "2", "--gpus", "3", "--", "x"}, "given twice: 2 and 3");
    refused({"--site", "s", "--sweep", "a,2", "--", "x"}, "'a' is no number of ranks");
    refused({"--site", "s", "--ranks", "4", "--sweep", "1,8", "--", "x"},
            "--sweep asks for 8 ranks and --ranks for 4; give --ranks 8");
    refused({"--site", "s", "--gpus", "2", "--after", "any:", "--", "x"}, "--after 'any:': the number of a job is missing");
    refused({"--site", "s", "--gpus", "2", "--after", "", "--", "x"}, "--after: the value is empty");
    refused({"--site", "s", "--gpus", "2", "-x", "node1", "--", "x"},
            "--env node1=VALUE (sbatch's -x: --sbatch '--exclude=node1')");
    refused({"--sit", "s", "--", "x"}, "did you mean --site?");
}

}  // namespace
}  // namespace muster
