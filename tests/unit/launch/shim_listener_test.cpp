#include "launch/wire/shim_listener.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "launch/wire/launcher_link.hpp"

namespace muster {
namespace {

environment variables_for(int port, run_key const& key) {
    return {{"MUSTER_LAUNCHER", with_port("127.0.0.1", port)}, {"MUSTER_TOKEN", to_text(key)}};
}

unique_fd call(int port) {
    return connect_to("127.0.0.1", port, duration(5));
}

void send_all(unique_fd const& to, std::string const& bytes) {
    ASSERT_EQ(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

bool is_closed(unique_fd const& socket) {
    char byte = 0;
    ssize_t const count = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return count == 0 || (count < 0 && errno == ECONNRESET);
}

/// Runs the loop until `done`, or for five seconds.
template <typename Done>
bool run_until(event_loop& loop, Done done) {
    auto const end = event_loop::clock::now() + std::chrono::seconds(5);
    std::function<void()> const look = [&] {
        if (done() || event_loop::clock::now() > end) return loop.stop();
        loop.after(duration(0.005), look);
    };
    look();
    loop.run();
    return done();
}

struct listening {
    explicit listening(std::size_t shims = 2)
        : door(loop, shims, duration(15), [this](wire::hello const& hello, std::unique_ptr<frame_channel>& link) {
              hosts.push_back(hello.host);
              links.push_back(std::move(link));
              loop.stop();
          }) {}
    event_loop loop;
    std::vector<std::string> hosts;
    std::vector<std::unique_ptr<frame_channel>> links;
    shim_listener door;
};

TEST(shim_listener, knows_a_shim_by_the_key) {
    listening one;
    std::thread shim([&, variables = variables_for(one.door.port(), one.door.key())] {
        auto link = connect_to_launcher(variables);
        wire::hello hello;
        hello.host = "node7";
        send_all(link.socket, with_frame_header(link.session->seal(wire::encode(hello))));
    });
    run_until(one.loop, [&] { return !one.hosts.empty(); });
    shim.join();
    EXPECT_EQ(one.hosts, std::vector<std::string>{"node7"});
    EXPECT_EQ(one.door.refused(), 0u);
}

TEST(shim_listener, and_a_shim_of_another_run_do_not_meet) {
    listening one;
    std::string said;
    std::thread shim([&, variables = variables_for(one.door.port(), make_run_key())] {
        try {
            connect_to_launcher(variables);
        } catch (error const& e) {
            EXPECT_EQ(e.code(), errc::unavailable);
            said = e.what();
        }
    });
    run_until(one.loop, [&] { return one.door.refused() > 0; });
    shim.join();
    EXPECT_NE(said.find("another program answers there"), std::string::npos) << said;
    EXPECT_TRUE(one.hosts.empty());
}

TEST(shim_listener, that_has_ended_is_known_as_such) {
    int const port = listening().door.port();
    try {
        connect_to_launcher(variables_for(port, make_run_key()));
        FAIL();
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::not_found) << e.what();
    }
}

TEST(shim_listener, says_nothing_by_itself_and_closes_what_is_no_shim) {
    listening one;
    auto const silent = call(one.door.port());
    auto const browser = call(one.door.port());
    auto const large = call(one.door.port());
    auto const liar = call(one.door.port());
    send_all(browser, "GET / HTTP/1.1\r\n\r\n");
    send_all(large, std::string("\x7f\xff\xff\xff", 4));
    send_all(liar, with_frame_header(make_greeting(make_nonce())) + with_frame_header(std::string(100, 'x')));
    EXPECT_TRUE(run_until(one.loop, [&] { return one.door.refused() == 3; })) << one.door.refused();
    char byte = 0;
    EXPECT_LT(::recv(silent.get(), &byte, 1, MSG_DONTWAIT), 0);
    EXPECT_FALSE(is_closed(silent));
    EXPECT_TRUE(is_closed(browser));
    EXPECT_TRUE(is_closed(large));
    EXPECT_TRUE(one.hosts.empty());
}

TEST(shim_listener, holds_a_bounded_number_of_strangers_the_latest) {
    listening one(2);
    std::vector<unique_fd> callers;
    for (int i = 0; i < 200; ++i) callers.push_back(call(one.door.port()));
    EXPECT_TRUE(run_until(one.loop, [&] { return one.door.refused() == 200 - 66; })) << one.door.refused();
    EXPECT_EQ(one.door.unnamed(), 66u);
    EXPECT_TRUE(is_closed(callers.front()));
    EXPECT_FALSE(is_closed(callers.back()));
}

TEST(shim_listener, drops_who_says_nothing_in_three_seconds) {
    listening one;
    auto const silent = call(one.door.port());
    EXPECT_TRUE(run_until(one.loop, [&] { return one.door.refused() == 1; }));
    EXPECT_TRUE(is_closed(silent));
}

TEST(shim_listener, whose_process_was_kept_from_running_drops_nobody_who_has_spoken) {
    constexpr std::size_t shims = 80;  // more than the loop hears in one turn
    listening one(shims);
    std::vector<unique_fd> callers;
    for (std::size_t i = 0; i < shims; ++i) callers.push_back(call(one.door.port()));
    ASSERT_TRUE(run_until(one.loop, [&] { return one.door.unnamed() == shims; }));
    for (auto const& caller : callers) send_all(caller, with_frame_header(make_greeting(make_nonce())));
    std::this_thread::sleep_for(std::chrono::milliseconds(3600));  // the loop stands still for longer than they may be silent
    auto const answered = [&] {
        return std::all_of(callers.begin(), callers.end(), [](unique_fd const& caller) {
            char byte = 0;
            return ::recv(caller.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 1;
        });
    };
    EXPECT_TRUE(run_until(one.loop, answered));
    EXPECT_EQ(one.door.refused(), 0u);
}

// The shim is the oldest of all that the list has room for; it says hello, and another calls before the listener has forgotten it.
TEST(shim_listener, makes_room_while_a_shim_becomes_somebody_elses) {
    event_loop loop;
    std::vector<std::unique_ptr<frame_channel>> links;
    shim_listener door(loop, 2, duration(15),
                       [&](wire::hello const&, std::unique_ptr<frame_channel>& link) { links.push_back(std::move(link)); });
    std::atomic<bool> greeted = false;
    launcher_link link;
    std::thread shim([&, variables = variables_for(door.port(), door.key())] {
        link = connect_to_launcher(variables);
        greeted = true;
    });
    EXPECT_TRUE(run_until(loop, [&] { return greeted.load(); }));
    shim.join();
    std::vector<unique_fd> callers;
    for (int i = 0; i < 65; ++i) callers.push_back(call(door.port()));
    ASSERT_TRUE(run_until(loop, [&] { return door.unnamed() == 66; }));
    send_all(link.socket, with_frame_header(link.session->seal(wire::encode(wire::hello{}))));
    callers.push_back(call(door.port()));
    EXPECT_TRUE(run_until(loop, [&] { return links.size() == 1; }));
}

TEST(launcher_link, tries_an_address_again_that_connects_and_says_nothing) {
    auto const door = listen_on_all();
    auto const key = make_run_key();
    std::thread launcher([&] {
        unique_fd(::accept4(door.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();  // kept busy by others
        unique_fd const shim(::accept4(door.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        std::string greeting(frame_header_bytes + greeting_bytes, '\0');
        ASSERT_EQ(::recv(shim.get(), greeting.data(), greeting.size(), MSG_WAITALL), static_cast<ssize_t>(greeting.size()));
        auto const own = make_nonce();
        secure_session session(key, wire_end::launcher, read_greeting(greeting.substr(frame_header_bytes)).value(), own);
        send_all(shim, with_frame_header(make_answer(own)) + with_frame_header(session.seal("")));
    });
    EXPECT_TRUE(connect_to_launcher(variables_for(door.port, key)).session);
    launcher.join();
}

TEST(launcher_link, goes_on_to_the_next_address_where_the_key_is_not_known) {
    auto const door = listen_on_all();
    std::thread stranger([&] {
        unique_fd const shim(::accept4(door.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
        send_all(shim, with_frame_header(make_answer(make_nonce())) + with_frame_header(std::string(sealing_bytes, 'x')));
        std::this_thread::yield();
    });
    listening one;
    auto variables = variables_for(one.door.port(), one.door.key());
    variables.set("MUSTER_LAUNCHER", with_port("127.0.0.1", door.port) + "," + with_port("127.0.0.1", one.door.port()));
    bool met = false;
    std::thread shim([&] { met = connect_to_launcher(variables).session != nullptr; });
    run_until(one.loop, [&] { return one.door.refused() > 0; });  // it goes again without a word
    shim.join();
    stranger.join();
    EXPECT_TRUE(met);
}

}  // namespace
}  // namespace muster
