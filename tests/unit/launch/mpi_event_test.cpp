#include "launch/wire/mpi_event.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace muster {
namespace {

TEST(mpi_event, goes_over_a_socket) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    mpi_event const aborted{mpi_event::kind::aborted, -7};
    write_event(ends[1], {});
    write_event(ends[1], aborted);
    EXPECT_EQ(read_events(ends[0]), (std::vector{mpi_event{}, aborted}));
    for (int i = 0; i < 20; ++i) write_event(ends[1], {mpi_event::kind::finalized, i});
    auto const first = read_events(ends[0]);
    auto const rest = read_events(ends[0]);
    ASSERT_EQ(first.size() + rest.size(), 20u);
    EXPECT_EQ(rest.back(), (mpi_event{mpi_event::kind::finalized, 19}));
    for (int i = 0; i < 100'000; ++i) write_event(ends[1], aborted);  // nobody reads: nobody waits
    ::close(ends[1]);
    while (!read_events(ends[0]).empty()) {
    }
    ::close(ends[0]);
}

}  // namespace
}  // namespace muster
