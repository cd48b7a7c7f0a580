#include "launch/ranks/member_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "pmix/member_message.hpp"

namespace muster {
namespace {

TEST(member_socket, packets_wait_for_a_rank_that_does_not_read) {
    event_loop loop;
    auto own = member_socket::make();
    unique_fd const rank(::dup(own.child_fd()));
    own.close_child_end();
    own.watch(loop, [](std::string_view) {});
    std::vector<std::string> sent;
    for (char c = 'a'; c <= 'z'; ++c) sent.emplace_back(elastic::longest_bytes - 1, c);
    sent.emplace_back("the last");
    for (auto const& one : sent) own.send(one);  // some 4 MB, more than any socket holds
    std::vector<std::string> got;
    loop.watch_readable(rank.get(), [&] {
        std::string packet(elastic::longest_bytes, '\0');
        auto const size = ::recv(rank.get(), packet.data(), packet.size(), 0);
        ASSERT_GT(size, 0);
        packet.resize(static_cast<std::size_t>(size));
        got.push_back(std::move(packet));
        if (got.size() == sent.size() || got.back() == "the last") loop.stop();
    });
    loop.run();
    EXPECT_TRUE(got == sent) << got.size() << " of " << sent.size() << " packets";
}

TEST(member_socket, what_nobody_can_read_any_more_is_dropped) {
    event_loop loop;
    auto own = member_socket::make();
    own.watch(loop, [](std::string_view) {});
    own.close_child_end();
    for (int i = 0; i < 100; ++i) own.send("nobody reads this");
    own.close();
    own.send("nor this");
}

}  // namespace
}  // namespace muster
