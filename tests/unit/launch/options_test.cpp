#include <gtest/gtest.h>

#include "base/error.hpp"
#include "launch/hardware/topology.hpp"
#include "launch/ranks/rank_variables.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace muster {
namespace {

using words = std::vector<std::string>;

/// Of a command line alone: no environment, no files.
run_options options_of(words const& args) {
    return make_run_options(resolve_settings("run", args, {}));
}

std::string failure(words const& args) {
    try {
        options_of(args);
    } catch (error const& e) {
        EXPECT_EQ(exit_code(e.code()) == 2 || e.code() == errc::parse, true);
        return e.what();
    }
    return "";
}

TEST(run_options, the_program_keeps_its_own_options) {
    auto const o = options_of({"-n", "4", "--tag-output", "--", "python", "-n", "train.py", "--"});
    EXPECT_EQ(o.place.ranks, 4);
    EXPECT_TRUE(o.tag_output);
    EXPECT_EQ(o.command, (words{"python", "-n", "train.py", "--"}));
}

TEST(run_options, the_first_word_that_is_no_option_is_the_program) {
    EXPECT_EQ(options_of({"-n4", "./a.out", "-x"}).command, (words{"./a.out", "-x"}));
    EXPECT_EQ(options_of({"-np", "4", "a", "-np", "3"}).command, (words{"a", "-np", "3"}));
    EXPECT_EQ(options_of({"--np=4", "-x", "A=1", "-x", "B", "a"}).exports, (words{"A=1", "B"}));
    EXPECT_EQ(options_of({"-np", "4", "a"}).place.ranks, 4);
}

TEST(run_options, all_have_their_place) {
    auto const o = options_of({"--slots-per-node",
                               "8",
                               "--ranks-per-gpu",
                               "2",
                               "--bind-to",
                               "numa",
                               "--cpus-per-rank",
                               "3",
                               "--wd",
                               "/tmp",
                               "--output-dir",
                               "out",
                               "--timestamp-output",
                               "--timeout",
                               "5min",
                               "--start-timeout",
                               "30",
                               "--grace",
                               "250ms",
                               "-q",
                               "--allow-singletons",
                               "--scheduler",
                               "local",
                               "a"});
    run_options wanted;
    wanted.place = {.slots_per_node = 8, .ranks_per_gpu = 2, .bind_to = bind_policy::numa, .cpus_per_rank = 3};
    wanted.command = {"a"};
    wanted.working_dir = "/tmp";
    wanted.output_dir = "out";
    wanted.timestamp_output = wanted.quiet = wanted.allow_singletons = true;
    wanted.from.scheduler = scheduler_kind::local;
    wanted.timeout = duration(300);
    wanted.start_timeout = duration(30);
    wanted.grace = duration(0.25);
    EXPECT_EQ(o, wanted);
}

TEST(run_options, a_limit_of_0_is_none) {
    auto const unlimited = [](char const* zero) {
        return options_of({"--timeout", zero, "--start-timeout", zero, "--idle-timeout", zero, "--host-discovery-script", "d",
                           "--elastic-timeout", zero, "a"});
    };
    for (auto const* zero : {"0", "0s", "0:00:00"}) {
        auto const o = unlimited(zero);
        EXPECT_EQ(o.timeout, std::nullopt) << zero;
        EXPECT_EQ(o.start_timeout, std::nullopt) << zero;
        EXPECT_EQ(o.idle_timeout, std::nullopt) << zero;
        EXPECT_EQ(o.elastic_timeout, std::nullopt) << zero;
    }
    EXPECT_EQ(options_of({"a"}).elastic_timeout, duration(600));
}

TEST(run_options, mistakes_are_named) {
    EXPECT_EQ(failure({"--tag-ouput", "a"}), "unknown option '--tag-ouput', did you mean --tag-output?; --help lists all");
    EXPECT_NE(failure({"-n", "x", "a"}), "");
    EXPECT_NE(failure({"-n", "0", "a"}), "");
    EXPECT_NE(failure({"-n"}), "");
    EXPECT_NE(failure({}), "");
    EXPECT_NE(failure({"--"}), "");
    EXPECT_NE(failure({"--", ""}), "");
    EXPECT_NE(failure({"--timeout", "soon", "a"}), "");
    EXPECT_NE(failure({"--bind-to", "gpu!", "a"}), "");
    EXPECT_NE(failure({"--scheduler", "slrum", "a"}), "");
    EXPECT_NE(failure({"--help=3", "a"}), "");
}

TEST(rank_variables, tell_every_framework_the_same) {
    identity const who{"muster.h.1", 3, 4, 3, 4, 0, 1, "h", identity::source::muster};
    topology machine;
    machine.gpus = {{0, "GPU-a", "0000:01:00.0", "x", 0}, {1, "GPU-b", "0000:02:00.0", "x", 0}};
    binding place;
    place.device = machine.gpus[1];
    place.cores = cpuset{{4, 5}};
    place.visible_devices = "0,1";
    place.device_index = 1;
    environment v{{"RANK", "99"}, {"GLOO_SOCKET_IFNAME", "eth7"}};
    set_rank_variables(v, who, place, {"127.0.0.1", 29500, 29501, {"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"}});
    for (
        auto const& [name, value] : std::vector<std::pair<std::string, std::string>>{
            {"RANK", "3"},
            {"WORLD_SIZE", "4"},
            {"LOCAL_RANK", "3"},
            {"LOCAL_WORLD_SIZE", "4"},
            {"MASTER_ADDR", "127.0.0.1"},
            {"MASTER_PORT", "29500"},
            {"GROUP_RANK", "0"},
            {"GROUP_WORLD_SIZE", "1"},
            {"HOROVOD_RANK", "3"},
            {"HOROVOD_SIZE", "4"},
            {"HOROVOD_CROSS_SIZE", "1"},
            {"JAX_NUM_PROCESSES", "4"},
            {"JAX_PROCESS_ID", "3"},
            {"JAX_LOCAL_DEVICE_IDS", "1"},
            {"MUSTER_RANK", "3"},
            {"MUSTER_GPU_INDEX", "1"},
            {"MUSTER_GPU_UUID", "GPU-b"},
            {"CUDA_VISIBLE_DEVICES", "0,1"},
            {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
            {"OMP_NUM_THREADS", "2"},
            {"MUSTER_CPUS", "4-5"},
            {"GLOO_SOCKET_IFNAME", "eth7"},
            {"TF_CONFIG",
             R"({"cluster":{"worker":["127.0.0.1:1","127.0.0.1:2","127.0.0.1:3","127.0.0.1:4"]},"task":{"type":"worker","index":3}})"}})
        EXPECT_EQ(v.get(name), value) << name;
    EXPECT_EQ(identify(v, "elsewhere").rank, 3);
}

TEST(rank_variables, of_the_user_come_last) {
    identity const who{"n", 3, 4, 1, 2, 1, 2, "node2", identity::source::muster};
    environment v;
    complete_variables(v,
                       {who, {}, {"10.0.0.1", 29500, 29501, {}}, {"RANK=7", "PYTHONPATH=/mine"}, {"true"}, {"/lib/python", ""}});
    EXPECT_EQ(v.get("RANK"), "7");
    EXPECT_EQ(v.get("WORLD_SIZE"), "4");
    EXPECT_EQ(v.get("PYTHONPATH"), "/mine:/lib/python");
}

TEST(rank_variables, name_a_file_for_the_exception_that_ends_the_program) {
    identity const who{"n", 3, 4, 1, 2, 1, 2, "node2", identity::source::muster};
    environment v;
    v.set("MUSTER_GENERATION", "2");
    complete_variables(v, {who, {}, {}, {}, {"true"}, {}, "/run/of/this"});
    EXPECT_EQ(v.get_or("TORCHELASTIC_ERROR_FILE", ""), "/run/of/this/torch-error-2-3.json");
    complete_variables(v, {who, {}, {}, {}, {"true"}, {}});
    EXPECT_FALSE(v.has("TORCHELASTIC_ERROR_FILE"));  // an outer torchrun's
    complete_variables(v, {who, {}, {}, {"TORCHELASTIC_ERROR_FILE=/mine"}, {"true"}, {}, "/run/of/this"});
    EXPECT_EQ(v.get_or("TORCHELASTIC_ERROR_FILE", ""), "/mine");
}

TEST(rank_variables, give_programs_a_run_id_without_the_secret_of_the_jobs_name) {
    auto const id_of = [](std::string const& nspace) {
        environment v;
        set_rank_variables(v, {nspace, 0, 1, 0, 1, 0, 1, "h", identity::source::muster}, {}, {});
        return v.get_or("TORCHELASTIC_RUN_ID", "");
    };
    auto const id = id_of("muster.h.17.00112233445566778899aabbccddeeff");
    EXPECT_TRUE(id.starts_with("muster.h.17.")) << id;
    EXPECT_EQ(id.find("00112233"), std::string::npos) << id;
    EXPECT_EQ(id, id_of("muster.h.17.00112233445566778899aabbccddeeff"));
    EXPECT_NE(id, id_of("muster.h.17.00112233445566778899aabbccddeefe"));
}

}  // namespace
}  // namespace muster
