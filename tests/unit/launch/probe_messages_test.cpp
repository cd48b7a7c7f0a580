// What the launcher and a probe say to each other arrives as it was.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "launch/wire/messages.hpp"

namespace muster {
namespace {

template <typename T>
void expect_round_trip(T const& sent) {
    auto const got = wire::decode(wire::encode(sent));
    ASSERT_TRUE(std::holds_alternative<T>(got));
    EXPECT_EQ(std::get<T>(got), sent);
}

node_report full_report() {
    node_report r;
    r.version = "1.0";
    r.host = "node1";
    r.address = "10.0.0.1";
    r.interface = "eth0";
    r.address_fault = "a";
    r.port = 4711;
    r.cores = 4;
    r.cpus = 8;
    r.cpu_list = "0-7";
    r.gpu_note = "NVML";
    r.machine_fault = "b";
    r.program = "/bin/echo";
    r.program_fault = "c";
    r.working_dir_fault = "d";
    r.unfinished = {"e", "f\xff"};
    r.asked_at = 1.5;
    r.answered_at = 2.25;
    gpu_state const gpu{1, "GPU-a", "0000:07:00.0", "A100", 100, 40, 2, true, "heat", 1200, 1400, {"1 (x)", "2"}};
    r.gpus = {gpu, gpu_state{}};
    r.folders = {{"/tmp", std::uint64_t{1} << 45, ""}, {"/dev/shm", 0, "full"}};
    r.unresolved = {{"node2", "unknown"}};
    return r;
}

TEST(probe_messages, arrive_as_they_were) {
    node_question q;
    q.program = "python";
    q.working_dir = "/home";
    q.variables = {{"PATH", "/bin"}};
    q.own_step = true;
    q.names = {"node1", "node2"};
    q.address = "node1-ib";
    q.network_interface = "ib0";
    q.limit = duration(2.5);
    expect_round_trip(wire::examine{q});
    expect_round_trip(wire::examine{});
    expect_round_trip(wire::report{full_report()});
    expect_round_trip(wire::report{});
    expect_round_trip(wire::reach{"10.0.0.1", 4711});
    expect_round_trip(wire::reached{"refused"});
}

TEST(probe_messages, cut_short_are_refused) {
    auto const bytes = wire::encode(wire::report{full_report()});
    for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_THROW(wire::decode(std::string_view(bytes).substr(0, size)), error) << size;
}

}  // namespace
}  // namespace muster
