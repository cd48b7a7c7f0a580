#include "launch/wire/messages.hpp"

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "tests/every_member.hpp"

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

template <std::size_t I = 0>
void expect_all_kinds_come_back() {
    if constexpr (I < std::variant_size_v<message>) {
        using kind = std::variant_alternative_t<I, message>;
        for (bool const flag : {false, true}) {
            message const sent = member_filler(flag).make<kind>();
            EXPECT_TRUE(decode(encode(sent)) == sent) << "kind " << I;
        }
        EXPECT_TRUE(decode(encode(kind{})) == message(kind{})) << "kind " << I;
        expect_all_kinds_come_back<I + 1>();
    }
}

TEST(wire_messages, come_back_with_every_member) {
    expect_all_kinds_come_back();
}

TEST(wire_messages, carry_what_no_member_has_by_itself) {
    auto const made = member_filler(true).make<job>();
    EXPECT_TRUE(made.place.lists_gpus);
    EXPECT_EQ(made.command.size(), 2u);
    EXPECT_TRUE(made.place.share.gpus.has_value());
    EXPECT_NE(made.place.share.gpu_ids, "");
    auto const back = decode(encode(made));
    EXPECT_TRUE(std::get<job>(back).place.lists_gpus);
}

TEST(wire_messages, come_back_as_they_were) {
    std::vector<message> const all{
        full_job(),
        ended{0x8b, "last\nlines \xff", true, memory_verdict::in_cgroup},
        room{std::uint64_t{5} << 30},
        signal{15, true, true},
        exchange{"fence *", "0,2", std::string("\xff\0x", 3)},
        modex{1, 7, -1, -46, "\xff"},
        sampled{{.host = {}, .gpus = {{.number = "1/3", .name = "A100 \xff"}}}},
    };
    for (auto const& m : all) EXPECT_TRUE(decode(encode(m)) == m) << m.index();
}

TEST(wire_messages, anything_else_is_refused) {
    auto const whole = encode(full_job());
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(decode(whole.substr(0, size)), error) << size;
    EXPECT_THROW(decode("GET / HTTP/1.1\r\n"), error);
    EXPECT_THROW(decode(std::string(100, '\0')), error);
    EXPECT_THROW(decode(encode(bye{}) + "x"), error);
    EXPECT_TRUE(decode(encode(hello{}) + "x") == message(hello{})) << "a later version may say more";
    auto wrong = encode(ended{});
    wrong.back() = 99;  // none of memory_verdict
    EXPECT_THROW(decode(wrong), error);
}

}  // namespace
}  // namespace muster::wire
