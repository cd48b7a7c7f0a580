#include "launch/wire/messages.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "base/field_count.hpp"

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

/// Makes values of all types, none of them twice in a row and none that a member has by itself, but for booleans, which are all `flag`.
class value_maker {
  public:
    explicit value_maker(bool flag) : flag_(flag) {}

    template <typename T>
    T make() {
        if constexpr (std::is_same_v<T, bool>)
            return flag_;
        else if constexpr (std::is_enum_v<T>)
            return static_cast<T>(1);
        else if constexpr (std::is_same_v<T, duration>)
            return duration(100.5 + ++made_);
        else if constexpr (std::is_arithmetic_v<T>)
            return static_cast<T>(50 + ++made_ % 70);
        else if constexpr (std::is_same_v<T, std::string>)
            return "text " + std::to_string(++made_) + "\n\xff";
        else if constexpr (std::is_same_v<T, environment>)
            return environment({{make<std::string>(), make<std::string>()}});
        else if constexpr (std::is_aggregate_v<T>)
            return whole<T>(std::make_index_sequence<field_count<T>>());
        else
            return one_within(static_cast<T*>(nullptr));
    }

  private:
    struct member {
        value_maker& maker;
        template <typename T>
        operator T() const {
            return maker.make<T>();
        }
    };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"  // an optional takes its value from `member`, and not itself
    template <typename T, std::size_t... I>
    T whole(std::index_sequence<I...>) {
        return T{((void)I, member{*this})...};
    }
#pragma GCC diagnostic pop
    template <typename T>
    std::vector<T> one_within(std::vector<T>*) {
        return {make<T>(), make<T>()};
    }
    template <typename T>
    std::optional<T> one_within(std::optional<T>*) {
        return make<T>();
    }

    bool flag_;
    int made_ = 0;
};

template <std::size_t I = 0>
void expect_all_kinds_come_back() {
    if constexpr (I < std::variant_size_v<message>) {
        using kind = std::variant_alternative_t<I, message>;
        for (bool const flag : {false, true}) {
            message const sent = value_maker(flag).make<kind>();
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
    auto const made = value_maker(true).make<job>();
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
        gpus_used{{{"0", "A100", 87, 80u << 20, 40u << 20, 312}, {"1/3", "A100 \xff", -1, 0, 0, -1}}},
    };
    for (auto const& m : all) EXPECT_TRUE(decode(encode(m)) == m) << m.index();
}

TEST(wire_messages, anything_else_is_refused) {
    auto const whole = encode(full_job());
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(decode(whole.substr(0, size)), error) << size;
    EXPECT_THROW(decode("GET / HTTP/1.1\r\n"), error);
    EXPECT_THROW(decode(std::string(100, '\0')), error);
}

}  // namespace
}  // namespace muster::wire
