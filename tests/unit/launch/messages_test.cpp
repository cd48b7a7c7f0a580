#include "launch/wire/messages.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster::wire {
namespace {

job full_job() {
    job j;
    j.who = {"muster.h.1", 5, 16, 1, 4, 1, 4, "node2", identity::source::muster};
    j.place.ranks = 16;
    j.place.cpus_per_rank = 3;
    j.place.bind_to = bind_policy::numa;
    j.place.gpus_seen = gpu_visibility::own_first;
    j.place.cpu_map = {"0-3", "4-7"};
    j.place.gpu_map = {3, 2, 1, 0};
    j.place.smt = false;
    j.place.reserved_cpus = "0";
    j.command = {"./a.out", "", "two\nlines", std::string("\xff\x00\x80", 3)};
    j.working_dir = "/scratch/b c";
    j.variables = {{"A", "1"}, {"B", "\xfe not UTF-8"}};
    j.exports = {"X=y"};
    j.output_dir = "/out";
    j.output_window = 1 << 20;
    j.own_step = j.hold_worker_port = true;
    j.python_package = "/opt/muster/lib/muster/python";
    j.python_horovod = "/opt/muster/lib/muster/as_horovod";
    j.network_interface = "ib0";
    j.address = "node2i";
    j.grace = duration(2.5);
    j.lost_after = duration(15);
    j.limits = {{RLIMIT_CORE, 4096}, {RLIMIT_STACK, RLIM_INFINITY}};
    j.file_mask = 027;
    j.in_place = true;
    return j;
}

TEST(wire_messages, come_back_as_they_were) {
    std::vector<message> const all{
        hello{"1.0", "node2", 5, 16, 4711, "42.0", "a fault"},
        full_job(),
        ready{2, "GPU-a", "0-7", "hsn0", "why", "note", "10.0.0.2", 4000, 4001, 4002},
        go{"10.0.0.1", 4000, 4001, {"10.0.0.1:1", "10.0.0.2:2"}},
        started{99},
        failed{"no program", 127},
        ended{0x8b, "last\nlines \xff", true, memory_verdict::in_cgroup},
        gone{},
        room{std::uint64_t{5} << 30},
        used_mpi{"libmpi.so.40"},
        orphaned{"slurmstepd"},
        signal{15, true, true},
        bye{3},
        asked_to_end{15},
        aborting{5, 42},
        ping{7},
        pong{7, 2},
        inspect{8, "py-spy dump --pid {pid}"},
        seen{8, {4711, 'S', "futex", 1.5, true, 2.5, "step 5", true, "a stack", true, 0x200}},
        start_shims{{"/opt/muster", "shim"},
                    environment({{"A", "b=c\n"}}),
                    8,
                    "n[1-4]",
                    {4, 0, 2, 1, 2},
                    "job\xff",
                    "ib0",
                    false,
                    duration(40),
                    2},
        exchange{"fence *", "0,2", std::string("\xff\0x", 3)},
        modex{1, 7, -1, -46, "\xff"},
        input{"x"},
        taken{},
        shims_ended{},
        met{true},
        meet_launcher{3, environment({{"MUSTER_TOKEN", "key"}}), duration(40)},
        settled{},
        member_packet{"hello\n"},
        gpus_used{{{"0", "A100", 87, 80u << 20, 40u << 20, 312}, {"1/3", "A100 \xff", -1, 0, 0, -1}}},
    };
    for (auto const& m : all) EXPECT_TRUE(decode(encode(m)) == m) << m.index();
    EXPECT_TRUE(decode(encode(job{})) == message(job{}));
}

TEST(wire_messages, anything_else_is_refused) {
    auto const whole = encode(full_job());
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(decode(whole.substr(0, size)), error) << size;
    EXPECT_THROW(decode("GET / HTTP/1.1\r\n"), error);
    EXPECT_THROW(decode(std::string(100, '\0')), error);
}

}  // namespace
}  // namespace muster::wire
