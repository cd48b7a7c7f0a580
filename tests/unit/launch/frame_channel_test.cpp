#include "launch/wire/frame_channel.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "launch/system/network.hpp"

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
    ASSERT_EQ(::write(b.get(), "\0\0", 2), 2);
    EXPECT_FALSE(one.has_lost_peer());
    b.reset();
    EXPECT_TRUE(one.has_lost_peer()) << "before the loop tells";
    loop.run();
    EXPECT_NE(left.closed, "");
    EXPECT_FALSE(one.open());
    EXPECT_FALSE(one.has_lost_peer()) << "a closed channel knows nothing";
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

TEST(channels, seal_frames_once_they_are_secured) {
    event_loop loop;
    auto [a, b] = socket_pair();
    listening_end left;
    listening_end right;
    frame_channel one(loop, std::move(a), into(left, loop, 99), 1024);
    frame_channel other(loop, std::move(b), into(right, loop, 3), 1024);
    auto const key = make_run_key();
    nonce const shims{1};
    nonce const launchers{2};
    one.secure(std::make_unique<secure_session>(key, wire_end::launcher, shims, launchers));
    other.secure(std::make_unique<secure_session>(key, wire_end::shim, shims, launchers));
    for (auto const& frame : {std::string("first"), std::string(), std::string(1024, 'x')}) one.send(frame);
    loop.run();
    EXPECT_EQ(right.frames, (std::vector<std::string>{"first", "", std::string(1024, 'x')}));
}

/// Two channels of one connection, secured with the same key.
struct secured_pair {
    explicit secured_pair(event_loop& loop, listening_end& left, listening_end& right, std::size_t largest,
                          std::size_t stop_after) {
        auto [a, b] = socket_pair();
        one = std::make_unique<frame_channel>(loop, std::move(a), into(left, loop, 99), largest);
        other = std::make_unique<frame_channel>(loop, std::move(b), into(right, loop, stop_after), largest);
        auto const key = make_run_key();
        one->secure(std::make_unique<secure_session>(key, wire_end::launcher, nonce{1}, nonce{2}));
        other->secure(std::make_unique<secure_session>(key, wire_end::shim, nonce{1}, nonce{2}));
    }
    std::unique_ptr<frame_channel> one, other;
};

TEST(channels, seal_long_frames_in_pieces_as_the_socket_takes_them) {
    event_loop loop;
    listening_end left, right;
    secured_pair const ends(loop, left, right, 1 << 23, 4);
    std::string large(5'000'000, 'x');
    large[4'999'999] = '\0';
    for (auto const& frame : {std::string("first"), std::string(16 << 10, 'a'), large, std::string("last")})
        ends.one->send(frame);
    EXPECT_FALSE(ends.one->sent_all());
    loop.run();
    EXPECT_EQ(right.frames, (std::vector<std::string>{"first", std::string(16 << 10, 'a'), large, "last"}));
    EXPECT_TRUE(ends.one->sent_all());
}

TEST(channels, keep_one_copy_of_a_frame_that_goes_to_many) {
    event_loop loop;
    auto const frame = std::make_shared<std::string const>(1'000'000, 'y');
    listening_end left, right[3];
    std::vector<std::unique_ptr<secured_pair>> pairs;
    for (auto& end : right) pairs.push_back(std::make_unique<secured_pair>(loop, left, end, 1 << 20, 1));
    for (auto const& pair : pairs) pair->one->send(frame);
    EXPECT_EQ(frame.use_count(), 4) << "each channel waits for its socket, and none has a copy";
    for (int i = 0; i < 3; ++i) loop.run();
    for (auto const& end : right) EXPECT_EQ(end.frames, std::vector<std::string>{*frame});
    EXPECT_EQ(frame.use_count(), 1);
}

TEST(channels, refuse_pieces_that_are_too_much_together) {
    event_loop loop;
    listening_end left, right;
    secured_pair const ends(loop, left, right, 100'000, 1);
    ends.one->send(std::string(100'001, 'x'));
    loop.run();
    EXPECT_TRUE(right.frames.empty());
    EXPECT_NE(right.closed.find("more than 100000 bytes"), std::string::npos) << right.closed;
}

TEST(channels, refuse_a_frame_in_clear_once_they_are_secured) {
    event_loop loop;
    auto [a, b] = socket_pair();
    listening_end left;
    listening_end right;
    frame_channel one(loop, std::move(a), into(left, loop, 99), 1024);
    frame_channel other(loop, std::move(b), into(right, loop, 99), 1024);
    other.secure(std::make_unique<secure_session>(make_run_key(), wire_end::shim, nonce{}, nonce{}));
    one.send(std::string(64, 'x'));
    loop.run();
    EXPECT_TRUE(right.frames.empty());
    EXPECT_NE(right.closed.find("did not send"), std::string::npos) << right.closed;
}

}  // namespace
}  // namespace muster
