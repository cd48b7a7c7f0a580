#include "base/process/network.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"

using namespace muster;
using testing::HasSubstr;

namespace {

std::string refusal(std::string_view text) {
    try {
        parse_port_range(text, "--ports");
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::usage);
        return e.what();
    }
    return "no error";
}

/// A range holds for a whole process, so each trial has one of its own. Returns what `trial` returns.
template <typename Trial>
int in_own_process(Trial&& trial) {
    auto const child = ::fork();
    if (child == 0) ::_exit(trial());
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

TEST(port_range, has_two_ends) {
    EXPECT_EQ(parse_port_range("40000-41000", "--ports"), (port_range{40000, 41000}));
    EXPECT_EQ(parse_port_range("40000 - 40000", "--ports"), (port_range{40000, 40000}));
    EXPECT_THAT(refusal("40000"), HasSubstr("no range of ports"));
    EXPECT_THAT(refusal("80-90"), HasSubstr("between 1024 and 65535"));
    EXPECT_THAT(refusal("40000-70000"), HasSubstr("between 1024 and 65535"));
    EXPECT_THAT(refusal("41000-40000"), HasSubstr("write 40000-41000"));
    EXPECT_THAT(refusal("a-b"), HasSubstr("between 1024 and 65535"));
}

TEST(port_range, is_where_a_process_listens) {
    // Of two ports, and a third listener finds none: all of one process, on all addresses and on one.
    auto const found = in_own_process([] {
        use_ports({43210, 43211});
        try {
            auto const one = listen_on_all(), other = listen_on_all();
            if (one.port + other.port != 43210 + 43211) return 1;
            if (auto const here = listen_on("127.0.0.1").port; here == 43210 || here == 43211) return 2;
            listen_on_all();
        } catch (error const& e) {
            return std::string_view(e.what()).find("from 43210 to 43211 is free") != std::string_view::npos ? 7 : 3;
        }
        return 4;
    });
    EXPECT_EQ(found, 7);
    EXPECT_FALSE(ports_in_use());
    EXPECT_GT(listen_on_all().port, 0);
}

TEST(port_range, holds_for_one_address_too) {
    auto const own = own_addresses();
    if (own.empty()) GTEST_SKIP() << "no address of this machine but the loopback";
    auto const port = in_own_process([&] {
        use_ports({43300, 43319});
        return listen_on(own.front().address).port - 43200;
    });
    EXPECT_GE(port, 100);
    EXPECT_LE(port, 119);
}
