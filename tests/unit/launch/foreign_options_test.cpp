// Command lines of other tools, as muster reads them.
#include "launch/settings/foreign_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/settings_to_options.hpp"

namespace muster {
namespace {

using testing::AllOf;
using testing::HasSubstr;

run_options meant(std::string const& line) {
    return make_run_options(resolve_settings("run", shell_split(line, "test"), {}));
}

TEST(foreign_options, mean_what_their_tools_mean) {
    // As other tools have it, and in muster's own words.
    struct {
        char const *tool, *given, *own;
    } const lines[]{
        {"horovodrun", "-np 4 -H a:2,b:2 --verbose --start-timeout 30 python train.py",
         "--ranks 4 --hosts a:2,b:2 --verbose --start-timeout 30s python train.py"},
        {"horovodrun", "--num-proc 4 --hostfile h --network-interface eth0 --output-filename out x",
         "-n 4 --hostfile h --network-interface=eth0 --output-dir=out x"},
        {"horovodrun", "-np 2 -hostfile h --network-interfaces ib0 --prefix-output-with-timestamp --mpi x",
         "-n 2 --hostfile=h --network-interface=ib0 --timestamp-output x"},
        {"horovodrun", "-np 4 --mpi-args '--mca a b' x", "-n 4 --engine-args '--mca a b' x"},
        {"mpirun", "-np 4 -host a:2,b:2 -x A -x B=1 -wdir /tmp -tag-output ./a.out -np 3",
         "-n 4 -H a:2,b:2 --env A --env B=1 --wd /tmp --tag-output ./a.out -np 3"},
        {"mpirun", "--n 4 --host a --map-by ppr:2:node --bind-to core x",
         "-n 4 -H a --map-by=slot --ranks-per-node=2 --bind-to=core x"},
        {"mpirun", "-npernode 4 --bind-to package --timestamp-output x",
         "--ranks-per-node 4 --bind-to socket --timestamp-output x"},
        {"mpirun", "--map-by node:PE=4 -machinefile h x", "--map-by node --cpus-per-rank 4 --hostfile h x"},
        {"mpirun", "--map-by ppr:4:node:pe=2 x", "--ranks-per-node 4 --map-by slot --cpus-per-rank 2 x"},
        {"mpirun", "-pernode -bynode --timeout 90 -q x", "--ranks-per-node 1 --map-by node --timeout 90s --quiet x"},
        {"mpirun", "-n4 -xA=1 -qv x", "-n 4 -x A=1 -q -v x"},
        {"mpiexec", "-n 8 -ppn 4 -f hosts -wdir w -l -iface hsn0 -genvall x",
         "-n 8 --ranks-per-node 4 --hostfile hosts --wd w --tag-output --network-interface hsn0 x"},
        {"mpiexec", "-np 2 -hosts a,b -prepend-rank x", "-n 2 -H a,b --tag-output x"},
        {"torchrun", "--nnodes=2 --nproc-per-node=4 python train.py --lr 0.1",
         "--nnodes 2 --ranks-per-node 4 python train.py --lr 0.1"},
        {"torchrun", "--nnodes 2:2 --nproc_per_node gpu x", "--nnodes 2 x"},
        {"torchrun", "--nproc_per_node=auto x", "x"},
        {"srun", "--ntasks 8 --nodes=2 --ntasks-per-node 4 --cpus-per-task 2 --label --chdir d x",
         "-n 8 --nnodes 2 --ranks-per-node 4 --cpus-per-rank 2 --tag-output --wd d x"},
    };
    for (auto const& line : lines) EXPECT_EQ(meant(line.given), meant(line.own)) << line.tool << " " << line.given;
    EXPECT_EQ(meant("-np 4 -H a:2 x").place.ranks, 4);  // two empty ones would be equal too
    EXPECT_EQ(meant("-npernode 4 --bind-to package x").place.bind_to, bind_policy::socket);
    EXPECT_EQ(meant("--map-by ppr:4:node:pe=2 x").place.ranks_per_node, 4);
    EXPECT_EQ(meant("--start-timeout 30 x").start_timeout, duration(30));
}

TEST(foreign_options, of_what_muster_does_otherwise_are_refused_with_the_way_out) {
    struct {
        char const *given, *tool, *way;
    } const lines[]{
        {"--standalone --nproc-per-node 2 x", "torchrun", "leave it out"},
        {"--nnodes 1:4 x", "--nnodes: ", "give one number"},
        {"--rdzv-backend=c10d x", "torchrun", "MASTER_ADDR"},
        {"--rdzv_endpoint a:1 x", "torchrun", "MASTER_ADDR"},
        {"--node-rank 1 x", "torchrun", "started once"},
        {"-m train", "torchrun", "python3 -m MODULE"},
        {"-t 3 x", "torchrun", "--output-dir"},
        {"-mca btl tcp x", "mpirun", "--engine-args"},
        {"--mca btl tcp x", "mpirun", "--engine-args"},
        {"--oversubscribe x", "mpirun", "--slots-per-node"},
        {"--allow-run-as-root x", "mpirun", "leave it out"},
        {"--report-bindings x", "mpirun", "muster plan"},
        {"-rf f x", "mpirun", "--cpu-map"},
        {"-N 2 x", "srun and mpirun", "--ranks-per-node"},
        {"-c 2 x", "srun and mpirun", "--cpus-per-rank"},
        {"--map-by socket x", "--map-by: ", "--bind-to"},
        {"--map-by ppr:2:socket x", "--map-by: ", "ppr:N:node"},
        {"--map-by slot:SPAN x", "--map-by: ", "PE=N"},
        {"--map-by ppr:x:node x", "--map-by", "'x' is no whole number"},
        {"-genv A 1 x", "mpiexec", "-x NAME=VALUE"},
        {"--gloo x", "horovodrun", "leave it out"},
        {"--max-np 2 x", "horovodrun", "-n N"},
        {"--fusion-threshold-mb 32 x", "horovodrun", "HOROVOD_FUSION_THRESHOLD"},
        {"-p 22 x", "unknown option", ""},
    };
    for (auto const& line : lines) try {
            meant(line.given);
            ADD_FAILURE() << line.given;
        } catch (error const& e) {
            EXPECT_EQ(e.code(), errc::usage);
            EXPECT_THAT(e.what(), AllOf(HasSubstr(line.tool), HasSubstr(line.way))) << line.given;
        }
}

TEST(foreign_options, hide_none_of_muster_s) {
    for (auto const& row : settings()) {
        if (!is_listed("run", row)) continue;
        std::vector<std::string> forms{"--" + std::string(row.name)};
        if (row.letter != 0) forms.push_back(std::string("-") + row.letter);
        for (auto const& form : forms) {
            auto const line = rewrite_foreign_options("run", {form, "1"});
            EXPECT_TRUE(line.spelled.contains(std::string(row.name))) << form;
            EXPECT_EQ(line.options.size(), 1u) << form;
        }
    }
}

TEST(shell_split, reads_what_shell_join_writes) {
    using words = std::vector<std::string>;
    EXPECT_EQ(shell_split("", "x"), words{});
    EXPECT_EQ(shell_split("  a  b\t'' ", "x"), (words{"a", "b", ""}));
    EXPECT_EQ(shell_split(R"(--mca 'a b'"c d" e\ f "\"\\\x$HOME" '\')", "x"),
              (words{"--mca", "a bc d", "e f", "\"\\\\x$HOME", "\\"}));
    for (words const& line : {words{"a b", "'", "\"", "\\", "", "$x", "a\nb"}, words{"--x=y z"}})
        EXPECT_EQ(shell_split(shell_join(line), "x"), line);
    for (auto const* wrong : {"'", "a \"b", "a\\", "\"a\\"}) EXPECT_THROW(shell_split(wrong, "x"), parse_error) << wrong;
}

}  // namespace
}  // namespace muster
