// The library's server that starts when the first rank connects.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include "pmix/library/open_library.hpp"
#include "pmix/server/client_variables.hpp"
#include "tests/unit/pmix/local_job.hpp"

namespace muster::pmix {
namespace {

using test::program;
using test::run_job;
using test::small_job;

#define SKIP_WITHOUT_LATE_START()                                           \
    if (!knows_client_variables(library_version(), environment::capture())) \
    GTEST_SKIP() << "starts at once: PMIx " << library_version() << " or a PMIX_MCA_* of the user"

/// Those that begin with PMIX_.
environment pmix_variables(environment const& all) {
    environment own;
    for (auto const& [name, value] : all)
        if (name.starts_with("PMIX_")) own.set(name, value);
    return own;
}

int port_in(environment const& variables) {
    auto const uri = variables.get_or("PMIX_SERVER_URI41", "");
    return std::atoi(uri.substr(uri.rfind(':') + 1).c_str());
}

/// A connection, or nothing where it was refused.
unique_fd call(int port) {
    unique_fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in there{};
    there.sin_family = AF_INET;
    there.sin_port = htons(static_cast<std::uint16_t>(port));
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&there), sizeof there) != 0) socket.reset();
    return socket;
}

/// A server that starts its library at the first call, and what it gives to one rank.
struct late_server {
    explicit late_server(int size, int rank = 0) : of(small_job(session.path, size), library_start::at_first_call) {
        of.set_client_environment(rank, variables);
    }
    unique_fd called() const { return call(port_in(variables)); }
    test::session_dir session;
    environment variables;
    server of;
};

TEST(client_variables, are_what_the_library_itself_sets) {
    SKIP_WITHOUT_LATE_START();
    EXPECT_TRUE(test::in_child([] {
        test::session_dir const session;
        auto const three = small_job(session.path, 3);
        server started(three);
        environment real, known;
        started.set_client_environment(2, real);
        set_client_variables(three, 2, port_in(real), library_version(), known);
        EXPECT_EQ(known.shell_lines(), pmix_variables(real).shell_lines());
    }));
}

TEST(client_variables, are_known_of_one_version_with_its_own_parts) {
    EXPECT_TRUE(knows_client_variables("4.2.9", {{"PMIX_RANK", "0"}}));
    EXPECT_FALSE(knows_client_variables("5.0.1", {}));
    EXPECT_FALSE(knows_client_variables("4.20.1", {}));
    EXPECT_FALSE(knows_client_variables("4.2.9", {{"PMIX_MCA_gds", "ds21"}}));
}

TEST(late_start, programs_without_pmix_do_not_start_the_library) {
    SKIP_WITHOUT_LATE_START();
    EXPECT_TRUE(test::in_child([] {
        late_server late(1);
        EXPECT_EQ(late.variables.get("OMPI_COMM_WORLD_SIZE"), "1");
        auto const rank = test::start({"/bin/true"}, late.variables);
        int status = -1;
        ASSERT_EQ(waitpid(rank.pid, &status, 0), rank.pid);
        EXPECT_TRUE(late.of.poll().empty());
        late.of.report_exit(0, status);
        late.of.forget_ended();
        EXPECT_FALSE(late.of.is_library_started());
    }));
}

class late_worlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(sizes, late_worlds, testing::Values(1, 32), testing::PrintToStringParamName());

TEST_P(late_worlds, come_together) {
    for (auto const* name : {"pmix_probe", "hello_openmpi"}) {
        if (access(program(name).c_str(), X_OK) != 0) continue;
        auto const result =
            run_job(GetParam(), {program(name), "exchange"}, environment::capture(), library_start::at_first_call);
        EXPECT_TRUE(result.all_ended_well()) << result.output;
        EXPECT_EQ(result.count(server_event::kind::connected), GetParam()) << result.output;
        EXPECT_EQ(result.count(server_event::kind::finalized), GetParam());
    }
}

TEST(late_start, ranks_that_ended_before_are_told_of) {
    SKIP_WITHOUT_LATE_START();
    EXPECT_TRUE(test::in_child([] {
        late_server late(2, 1);
        late.of.report_exit(0, 9);
        late.of.report_exit(1, 0);
        auto const caller = late.called();
        ASSERT_TRUE(caller);
        late.of.poll();
        EXPECT_TRUE(late.of.is_library_started());
        late.of.forget_ended();
    }));
}

TEST(late_start, one_that_fails_is_told_once_and_refuses_callers) {
    SKIP_WITHOUT_LATE_START();
    EXPECT_TRUE(test::in_child([] {
        late_server late(1);
        EXPECT_TRUE(late.of.poll().empty()) << "nobody has called";
        setenv("PMIX_MCA_psec", "no-such-part", 1);
        auto const first = late.called();
        ASSERT_TRUE(first);
        pollfd called{late.of.event_fd(), POLLIN, 0};
        EXPECT_EQ(::poll(&called, 1, 10'000), 1);
        EXPECT_THROW(late.of.poll(), error);
        EXPECT_TRUE(late.of.poll().empty());
        EXPECT_FALSE(late.called());
        char byte = 0;
        EXPECT_LE(::recv(first.get(), &byte, 1, 0), 0) << "who waited is not kept waiting";
        EXPECT_EQ(::poll(&called, 1, 0), 0);
        late.of.report_exit(0, 1);
    }));
}

}  // namespace
}  // namespace muster::pmix
