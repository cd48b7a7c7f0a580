#include "launch/wire/frame_channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "launch/system/network.hpp"
#include "launch/wire/token.hpp"

namespace muster {
namespace {

std::pair<unique_fd, unique_fd> socket_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {unique_fd(ends[0]), unique_fd(ends[1])};
}

struct listening_end {
    std::vector<std::string> frames;
    std::string closed;
};

frame_channel::callbacks into(listening_end& end, event_loop& loop, std::size_t stop_after) {
    return {[&, stop_after](std::string_view frame) {
                end.frames.emplace_back(frame);
                if (end.frames.size() == stop_after) loop.stop();
            },
            [&](std::string const& reason) {
                end.closed = reason;
                loop.stop();
            }};
}

TEST(channels, carry_frames_of_any_size_in_order) {
    event_loop loop;
    auto [a, b] = socket_pair();
    listening_end left;
    listening_end right;
    frame_channel one(loop, std::move(a), into(left, loop, 99), 1 << 26);
    frame_channel other(loop, std::move(b), into(right, loop, 4), 1 << 26);
    std::string large(5'000'000, 'x');
    large[4'999'999] = '\0';
    for (auto const& frame : {std::string("first"), std::string(), large, std::string("last")}) one.send(frame);
    EXPECT_FALSE(one.sent_all());  // far more than a socket takes at once
    loop.run();
    EXPECT_EQ(right.frames, (std::vector<std::string>{"first", "", large, "last"}));
    EXPECT_TRUE(one.sent_all());
}

TEST(channels, tell_when_the_peer_goes) {
    event_loop loop;
    auto [a, b] = socket_pair();
    listening_end left;
    frame_channel one(loop, std::move(a), into(left, loop, 99), 1024);
    b.reset();
    loop.run();
    EXPECT_NE(left.closed, "");
    EXPECT_FALSE(one.open());
    one.send("nobody hears this");
}

TEST(channels, refuse_what_is_no_frame_of_ours) {
    event_loop loop;
    auto [a, b] = socket_pair();
    listening_end left;
    frame_channel one(loop, std::move(a), into(left, loop, 99), 1024);
    ASSERT_EQ(::write(b.get(), "GET / HTTP/1.1\r\n", 16), 16);
    loop.run();
    EXPECT_NE(left.closed.find("bytes"), std::string::npos) << left.closed;
    EXPECT_TRUE(left.frames.empty());
}

TEST(channels, new_callbacks_get_the_next_frame) {
    event_loop loop;
    auto [a, b] = socket_pair();
    listening_end first;
    listening_end second;
    std::unique_ptr<frame_channel> one;
    one = std::make_unique<frame_channel>(loop, std::move(a),
                                          frame_channel::callbacks{[&](std::string_view frame) {
                                                                       first.frames.emplace_back(frame);
                                                                       one->set_callbacks(into(second, loop, 1), 1024);
                                                                   },
                                                                   [](std::string const&) {}},
                                          1024);
    listening_end nobody;
    frame_channel other(loop, std::move(b), into(nobody, loop, 99), 1024);
    other.send("one");
    other.send("two");
    loop.run();
    EXPECT_EQ(first.frames, std::vector<std::string>{"one"});
    EXPECT_EQ(second.frames, std::vector<std::string>{"two"});
}

TEST(network, a_listener_is_reached_by_every_own_address) {
    auto const listening = listen_on_all();
    for (auto const& own : own_addresses()) EXPECT_TRUE(connect_to(own.address, listening.port, duration(5))) << own.address;
    EXPECT_TRUE(connect_to("127.0.0.1", listening.port, duration(5)));
    EXPECT_EQ(interface_that_has("127.0.0.1"), "lo");
    EXPECT_EQ(interface_towards("127.0.0.1"), "lo");
    EXPECT_EQ(interface_that_has("203.0.113.7"), "");  // reserved for documentation: nobody's
}

TEST(network, ports_are_written_so_that_they_read_back) {
    EXPECT_EQ(with_port("10.0.0.1", 80), "10.0.0.1:80");
    EXPECT_EQ(with_port("fd00::1", 80), "[fd00::1]:80");
}

TEST(tokens, are_two_secrets_that_read_back) {
    auto const one = make_token();
    EXPECT_EQ(parse_token(one.text()), one);
    EXPECT_NE(one.launcher, one.shim);
    EXPECT_NE(make_token(), one);
    for (auto const* wrong : {"", "abc", "0123456789abcdef0123456789abcdef-0123456789abcdef0123456789abcdef"})
        EXPECT_ANY_THROW(parse_token(wrong)) << wrong;
    EXPECT_TRUE(same_secret("abc", "abc"));
    EXPECT_FALSE(same_secret("abc", "abd"));
    EXPECT_FALSE(same_secret("abc", "abcd"));
    EXPECT_FALSE(same_secret("", "a"));
}

}  // namespace
}  // namespace muster
