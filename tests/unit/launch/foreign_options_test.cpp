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
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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
        {"horovodrun",
         "-np 2 --min-num-proc 1 --max-np 4 --host-discovery-script d --slots-per-host 2 --elastic-timeout 60 "
         "--blacklist-cooldown-range 1 60 x",
         "-n 2 --min-np 1 --max-np 4 --host-discovery-script d --slots-per-node 2 --elastic-timeout 60s "
         "--blacklist-cooldown-range=1,60 x"},
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
        {"--nnodes 1:4 x", "--nnodes: ", "--min-np N to go on with fewer ranks, or --host-discovery-script"},
        {"--node-rank 1 x", "torchrun", "started once"},
        {"--gpus-per-task 2 x", "srun", "one GPU"},
        {"--export=NONE x", "srun", "--env NAME=VALUE"},
        {"--export=FOO=1 x", "srun", "--env NAME=VALUE"},
        {"--ssh-port 22 x", "horovodrun", "--remote-shell 'ssh -p PORT -i FILE'"},
        {"--ssh-identity-file key x", "horovodrun", "--remote-shell 'ssh -p PORT -i FILE'"},
        {"-mca btl", "mpirun", "two words belong to it"},
        {"--master-port", "torchrun", "a word belongs to it"},
        {"-p debug x", "srun", "muster submit"},
        {"-w a,b x", "srun", "-H a,b"},
        {"--mem-per-cpu=1G x", "srun", "muster submit"},
        {"--signal USR1@60 x", "srun", "--signal-before-end"},
        {"-xml x", "mpirun", "--output-dir"},
        {"-npersocket 2 x", "mpirun", "--ranks-per-node"},
        {"--preload-files a x", "mpirun", "muster stage copy"},
        {"-m train", "torchrun", "python3 -m MODULE"},
        {"-t 3 x", "torchrun", "--output-dir"},
        {"-rf f x", "mpirun", "--cpu-map"},
        {"-N 2 x", "srun and mpirun", "--ranks-per-node"},
        {"-c 2 x", "srun and mpirun", "--cpus-per-rank"},
        {"--map-by socket x", "--map-by: ", "--bind-to"},
        {"--map-by ppr:2:socket x", "--map-by: ", "ppr:N:node"},
        {"--map-by slot:SPAN x", "--map-by: ", "PE=N"},
        {"--map-by ppr:x:node x", "--map-by", "'x' is no whole number"},
        {"-genv A 1 x", "mpiexec", "-x NAME=VALUE"},
        {"--fusion-threshold-mb many x", "horovodrun", "'many' is no number of MiB"},
    };
    for (auto const& line : lines) try {
            meant(line.given);
            ADD_FAILURE() << line.given;
        } catch (error const& e) {
            EXPECT_EQ(e.code(), errc::usage);
            EXPECT_THAT(e.what(), AllOf(HasSubstr(line.tool), HasSubstr(line.way))) << line.given;
        }
}

TEST(foreign_options, that_change_nothing_are_a_note) {
    struct {
        char const *tool, *given, *own;
    } const lines[]{
        {"torchrun", "--standalone --nproc-per-node 2 --master-port=29500 --master_addr a x", "--ranks-per-node 2 x"},
        {"torchrun", "--rdzv-backend=c10d --rdzv_endpoint a:1 --rdzv-id 7 --rdzv-conf timeout=3 --local-addr a --node-rank 0 x",
         "x"},
        {"torchrun",
         "--start-method fork --role w --monitor-interval 5 --signals-to-handle TERM --numa-binding=node --no-python x", "x"},
        {"mpirun", "-np 4 --oversubscribe --allow-run-as-root -report-bindings --display-map --display map x", "-n 4 x"},
        {"mpirun", "-bind-to none -map-by slot -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib --prtemca a b x",
         "--bind-to none --map-by slot -x NCCL_DEBUG=INFO -x OMPI_MCA_pml=ob1 -x OMPI_MCA_btl=^openib x"},
        {"mpirun",
         "-n 2 -hnp u -launch-agent a --noprefix -d --bycore --report-state-on-timeout --display-devel-allocation "
         "-output-filename o x",
         "-n 2 --map-by slot --output-dir o x"},
        {"mpiexec", "-n 2 -gpus-per-proc 1 -nameserver n -enable-x x", "-n 2 x"},
        {"srun",
         "-n 2 -J name -W 0 --wait=0 -X -E -k -Q -O --job-name=x --compress=lz4 --resv-ports --propagate=NONE --profile none -D "
         "/tmp x",
         "-n 2 -q --wd /tmp x"},
        {"mpiexec", "-n 2 -genvall -envlist A,B -launcher ssh -rmk pbs x", "-n 2 x"},
        {"srun",
         "-n 2 --mpi=pmix --export=ALL,FOO=1,HOME,BAR=a=b --kill-on-bad-exit=1 -K -u --gres=gpu:4 --gpus-per-task 1 --gpu-bind "
         "none --overlap x",
         "-n 2 -x FOO=1 -x BAR=a=b x"},
        {"horovodrun",
         "-np 2 --gloo --tcp --disable-cache --fusion-threshold-mb 32 --cycle-time-ms 5 --no-stall-check --autotune "
         "--num-nccl-streams 2 x",
         "-n 2 -x HOROVOD_FUSION_THRESHOLD=33554432 -x HOROVOD_CYCLE_TIME=5 -x HOROVOD_STALL_CHECK_DISABLE=1 x"},
    };
    for (auto const& line : lines) EXPECT_EQ(meant(line.given), meant(line.own)) << line.tool << " " << line.given;
    auto const noted = resolve_settings("run", {"--standalone", "--master-port", "29500", "-np", "2", "x"}, {});
    EXPECT_THAT(noted.notes, ElementsAre(HasSubstr("--standalone (torchrun) changes nothing: muster needs no rendezvous"),
                                         HasSubstr("--master-port (torchrun) changes nothing")));
    EXPECT_EQ(noted.command, std::vector<std::string>{"x"});
    EXPECT_THAT(resolve_settings("run", {"--gpus-per-task=1", "x"}, {}).notes,
                ElementsAre(HasSubstr("--gpu-visibility own shows it its own only")));
    EXPECT_THAT(resolve_settings("run", {"--export=ALL", "x"}, {}).notes, ElementsAre(HasSubstr("changes nothing: all of your")));
}

/// From the help texts of torchrun 2.9, mpirun 4.1 and 5.0, Hydra 4.0, srun 25.05 and horovodrun 0.28.
TEST(foreign_options, none_of_them_is_unknown) {
    struct {
        char const *tool, *options;
    } const tools[]{
        {"torchrun",
         "--nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --standalone --max-restarts "
         "--monitor-interval "
         "--start-method --event-log-handler --role -m --no-python --run-path --log-dir -r -t --local-ranks-filter --node-rank "
         "--master-addr "
         "--master-port --local-addr --logs-specs --numa-binding --signals-to-handle --virtual-local-rank "
         "--duplicate-stdout-filters "
         "--duplicate-stderr-filters --log-line-prefix-template"},
        {"mpirun",
         "--n -H --hostfile --default-hostfile -x --map-by --rank-by --bind-to --oversubscribe --nooversubscribe "
         "--allow-run-as-root --report-bindings --display-map --display-allocation --display --output --tag-output "
         "--timestamp-output --output-filename --merge-stderr-to-stdout --mca --gmca --omca --prtemca --pmixmca --am --tune -rf "
         "--rankfile --cpu-set --cpu-list --use-hwthread-cpus --prefix --path --nolocal --do-not-launch --app --stdin -q --quiet "
         "-v --verbose --timeout "
         "--enable-recovery --leave-session-attached --debug-daemons --overload-allowed --bind-to-core --bind-to-socket --bycore "
         "--bynode --byslot --cartofile --continuous --cpus-per-proc --cpus-per-rank --debug --debug-daemons-file --debug-devel "
         "--debugger --disable-recovery --display-devel-allocation --display-devel-map --display-diffable-map --display-topo "
         "--do-not-resolve --dvm --enable-instant-on-support --fwd-mpirun-port --get-stack-traces --hnp --host "
         "--index-argv-by-rank --launch-agent --machinefile --max-restarts --max-vm-size --noprefix --novm --np --npernode "
         "--npersocket --ompi-server --output-proctable --pernode --personality --ppr --preload-binary --preload-files "
         "--report-child-jobs-separately --report-events --report-pid --report-state-on-timeout --report-uri "
         "--set-cwd-to-session-dir --show-progress --tv --use-regexp --wd --wdir --xml --xml-file --xterm -N -c -cf -d -hnp "
         "-max-restarts -npersocket -s -xml"},
        {"mpiexec",
         "-genv -genvlist -genvnone -genvall -f -hosts -wdir -configfile -env -envlist -envnone -envall -n -np -launcher "
         "-launcher-exec -rmk -topolib -bind-to -map-by -demux -verbose -info -print-all-exitcodes -iface -ppn -prepend-rank "
         "-disable-auto-cleanup -disable-hostname-propagation -usize -pmi-port -skip-launch-node -errfile-pattern -gpus-per-proc "
         "-localhost -membind -nameserver -order-nodes -outfile-pattern -prepend-pattern -profile"},
        {"srun",
         "-n --ntasks -N --nodes --ntasks-per-node -c --cpus-per-task -G --gpus --gpus-per-node --gpus-per-task --gpu-bind "
         "--gres --cpu-bind --export --kill-on-bad-exit -K -u --unbuffered -l --label --chdir --overlap --exact --mpi --hint "
         "--distribution --partition --account --qos --time --mem --exclusive --constraint --reservation --multi-prog --output "
         "--error --input --no-kill --propagate -q --quiet -v --acctg-freq --bb --bbf --bcast --bcast-exclude --begin "
         "--cluster-constraint --clusters --comment --compress --container --contiguous --core-spec --cores-per-socket "
         "--cpu-freq --cpus-per-gpu --deadline --delay-boot --dependency --disable-status --epilog --exclude --extra-node-info "
         "--gpu-freq --gpus-per-socket --gres-flags --het-group --hold --immediate --job-name --jobid --licenses --mail-type "
         "--mail-user --mcs-label --mem-per-cpu --mem-per-gpu --mincpus --nice --no-allocate --nodelist --ntasks-per-core "
         "--ntasks-per-socket "
         "--overcommit --oversubscribe --power --preserve-env --priority --profile --prolog --pty --quit-on-interrupt --reboot "
         "--relative --resv-ports --send-libs --signal --slurmd-debug --sockets-per-node --spread-job --switches --task-epilog "
         "--task-prolog --thread-spec --threads --threads-per-core --time-min --tmp --use-min-nodes --verbose --wait --wckey -A "
         "-B -C -D -E -H -I -J -L -M -O -Q -S -T -W -X -Z -b -d -e -i -k -m -o -p -r -s -t -w -x"},
        {"horovodrun",
         "-np --num-proc -cb --check-build --disable-cache --start-timeout --network-interfaces --output-filename --verbose "
         "--config-file "
         "--ssh-port --ssh-identity-file --fusion-threshold-mb --cycle-time-ms --cache-capacity --hierarchical-allreduce "
         "--autotune "
         "--autotune-log-file --autotune-warmup-samples --autotune-steps-per-sample --autotune-bayes-opt-max-samples "
         "--autotune-gaussian-process-noise --min-np --max-np --elastic-timeout --reset-limit --blacklist-cooldown-range "
         "--timeline-filename "
         "--timeline-mark-cycles --no-stall-check --stall-check-warning-time-seconds --stall-check-shutdown-time-seconds "
         "--mpi-threads-disable "
         "--mpi-args --binding-args --num-nccl-streams --thread-affinity --gloo-timeout-seconds --tcp --log-level "
         "--log-with-timestamp "
         "--prefix-output-with-timestamp -H --hosts -hostfile --hostfile --host-discovery-script --gloo --mpi --jsrun"},
    };
    for (auto const& tool : tools)
        for (auto const option : words_of(tool.options)) try {
                resolve_settings("run", {std::string(option), "1", "1", "x"}, {});
            } catch (error const& e) {
                EXPECT_THAT(e.what(), Not(HasSubstr("unknown option"))) << tool.tool;
            }
}

/// The words of sbatch and qsub for a job; `answer` is part of the error, or the value of the setting `name`.
TEST(foreign_options, of_sbatch_and_qsub_in_the_commands_for_jobs) {
    auto const given = [](std::string const& line) {
        return resolve_settings("submit", shell_split(line + " -- x", "test"), {});
    };
    struct {
        char const *line, *name, *value;
    } const meant[]{{"-p debug", "queue", "debug"},
                    {"-pdebug", "queue", "debug"},
                    {"-q normal", "queue", "normal"},
                    {"-J train", "job-name", "train"},
                    {"-N train", "job-name", "train"},
                    {"-J 0-3", "array", "0-3"},
                    {"-P proj", "account", "proj"},
                    {"-A proj", "account", "proj"},
                    {"-C a100", "constraint", "a100"},
                    {"-G 2", "gpus", "2"},
                    {"-n 3", "ranks", "3"},
                    {"-t 1h", "time", "1h"},
                    {"-H", "hold", "true"},
                    {"--chdir /tmp", "wd", "/tmp"},
                    {"-D/tmp", "wd", "/tmp"},
                    {"--wd /tmp", "wd", "/tmp"},
                    {"--tag-output", "tag-output", "true"},
                    {"--no-smt", "smt", "false"},
                    {"--idle-timeout 1min", "idle-timeout", "1min"},
                    {"--signal USR1@60", "signal-before-end", "USR1@60"}};
    for (auto const& one : meant) EXPECT_EQ(given(one.line).text(one.name), one.value) << one.line;
    struct {
        char const *line, *answer;
    } const refused[]{
        {"--exclude node1 --gpus 1", "write --sbatch '--exclude=node1', or"},
        {"--exclude=node1", "write --sbatch '--exclude=node1', or"},
        {"--exclude", "write --sbatch '--exclude=…', or"},
        {"--exclusive --ranks 4", "write --sbatch '--exclusive', or"},
        {"--exclusive=user", "write --sbatch '--exclusive=user', or"},
        {"--nice --gpus 1", "write --sbatch '--nice', or"},
        {"--overcommit --gpus 1", "write --sbatch '--overcommit', or"},
        {"-w node1", "write --sbatch '-w node1', or"},
        {"--nodelist node1,node2", "write --sbatch '--nodelist=node1,node2', or"},
        {"-o out.txt", "write --sbatch '-o out.txt', or"},
        {"--mem-per-cpu 2G", "write --sbatch '--mem-per-cpu=2G', or"},
        {"--comment \"it's\"", R"(write --sbatch '--comment=it'\''s', or)"},
        {"-l select=2:ncpus=4", "write --qsub '-l select=2:ncpus=4'"},
        {"-lselect=2", "write --qsub '-l select=2'"},
        {"-W block=true", "write --qsub '-W block=true'"},
        {"-V", "write --qsub '-V'"},
        {"-m abe", "write --qsub '-m abe'"},
        {"-N 2", "--ranks N and --ranks-per-node N"},
        {"-d afterok:7", "write --after"},
        {"-a 0-3", "write --array"},
        {"--gres gpu:2", "write --gpus N and --gpus-per-node N"},
        {"-v A=B", "write -x NAME=VALUE"},
        {"-I", "muster alloc"},
    };
    for (auto const& one : refused) try {
            given(one.line);
            ADD_FAILURE() << one.line;
        } catch (error const& e) {
            EXPECT_EQ(e.code(), errc::usage);
            EXPECT_THAT(e.what(), HasSubstr(one.answer)) << one.line;
        }
    // muster run has no queue, and its own words stay what they are.
    EXPECT_THROW(resolve_settings("run", {"-p", "debug", "x"}, {}), error);
    EXPECT_TRUE(resolve_settings("run", {"-q", "x"}, {}).flag("quiet"));
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

TEST(foreign_options, are_refused_all_at_once) {
    auto const refused = [](std::string const& line) {
        try {
            meant(line);
        } catch (error const& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    EXPECT_THAT(
        refused("--nproc-per-node 2 --log-dir logs --redirects 3 --nnodes=1 --tee 3 --virtual-local-rank train.py --lr --tee 2"),
        AllOf(HasSubstr("--log-dir is an option of torchrun"), HasSubstr("\n--redirects is an option of torchrun"),
              HasSubstr("\n--tee is an option of torchrun"), HasSubstr("\n--virtual-local-rank is an option of torchrun")));
    auto const one = refused("--tee 3 train.py --log-dir x");  // the program's
    EXPECT_THAT(one, HasSubstr("--tee is an option of torchrun"));
    EXPECT_THAT(one, Not(HasSubstr("--log-dir is")));
    EXPECT_THAT(refused("--tee 3 -n2 train.py --log-dir x"), Not(HasSubstr("--log-dir is")));  // a value is joined to -n
    EXPECT_THAT(refused("--tee 3 -np 2 --log-dir x train.py"), HasSubstr("\n--log-dir is"));   // -np is no -n
}

}  // namespace
}  // namespace muster
