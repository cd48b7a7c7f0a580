#include "comm/membership/member_link.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "comm/backend/comm_error.hpp"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

elastic::generation generation_of(int number, int rank, int size) {
    elastic::generation now{.number = number, .who = {"job", rank, size, rank, size, 0, 1, "here", identity::source::muster}};
    for (int member = 0; member < size; ++member) now.members.push_back(member);
    return now;
}

/// A launcher at the other end of a rank's socket: the test.
struct fake_launcher {
    unique_fd ours;
    int theirs = -1;
    member_link* link = nullptr;

    fake_launcher() {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        ours.reset(ends[0]);
        theirs = ::fcntl(ends[1], F_DUPFD, 64);  // not close-on-exec, as a rank gets it
        ::close(ends[1]);
        send(elastic::lost{7, {1}, "of a former generation"});  // that another program of the rank has not read
        send(generation_of(0, 0, 3));
        link = member_link::open({{"MUSTER_EVENTS", elastic::events_value(theirs)}}, "here/1/127.0.0.1/key");
        EXPECT_EQ(receive(), elastic::message{elastic::hello{"here/1/127.0.0.1/key"}});
    }
    void send(elastic::message const& what) const {
        auto const text = elastic::encode(what);
        EXPECT_EQ(::send(ours.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    }
    elastic::message receive() const {
        std::string text(1000, '\0');
        text.resize(static_cast<std::size_t>(::recv(ours.get(), text.data(), text.size(), 0)));
        return elastic::decode(text);
    }
};

std::vector<int> culprits_of(peer_loss const& loss) {
    try {
        loss.throw_if_told("allreduce");
    } catch (comm_error const& told) {
        EXPECT_EQ(told.code(), errc::peer_failed);
        EXPECT_THAT(told.what(), HasSubstr("allreduce cannot finish: "));
        return told.culprits();
    }
    return {-1};
}

void await_word(peer_loss const& loss) {
    while (!loss.is_told()) std::this_thread::yield();
}

TEST(MemberLink, WhoIsLostIsToldToCommunicatorsThatHaveIt) {
    fake_launcher launcher;
    auto const all = launcher.link->watch();
    auto const with = launcher.link->watch(std::vector{0, 2}), without = launcher.link->watch(std::vector{0, 1});
    EXPECT_THAT(culprits_of(*all), ElementsAre(-1));
    launcher.send(elastic::lost{9, {1}, "of another generation"});
    launcher.send(elastic::lost{0, {2}, "rank 2 on here was killed"});
    await_word(*with);
    EXPECT_THAT(culprits_of(*all), ElementsAre(2));
    EXPECT_THAT(culprits_of(*with), ElementsAre(1)) << "as its ranks are numbered";
    EXPECT_FALSE(without->is_told());
    EXPECT_TRUE(launcher.link->is_broken(0));
    EXPECT_THAT(culprits_of(*launcher.link->watch()), ElementsAre(2)) << "also where it comes later";
    launcher.send(elastic::lost{0, {1}, "too"});
    await_word(*without);
    EXPECT_THAT(culprits_of(*all), ElementsAre(1, 2));
}

TEST(MemberLink, TheNextGenerationEndsWhatIsOfTheOneBefore) {
    fake_launcher launcher;
    auto const before = launcher.link->watch();
    std::thread answer([&] {
        auto asked = std::get<elastic::reform>(launcher.receive());
        EXPECT_GT(std::exchange(asked.port, 0), 0) << "free on its node";
        EXPECT_EQ(asked, (elastic::reform{0, true, false}));
        launcher.send(generation_of(1, 1, 2));
    });
    EXPECT_EQ(launcher.link->reform(true, false, duration{60}), generation_of(1, 1, 2));
    answer.join();
    EXPECT_THAT(culprits_of(*before), IsEmpty());
    EXPECT_FALSE(launcher.link->watch()->is_told());
    EXPECT_FALSE(launcher.link->is_broken(1));
    EXPECT_TRUE(launcher.link->is_broken(0));
    EXPECT_THROW(launcher.link->reform(true, false, duration{0.01}), comm_error);
    launcher.ours.reset();  // the run ends
    EXPECT_THROW(launcher.link->reform(true, false, duration{60}), comm_error);
}

TEST(MemberLink, HostsThatChangeAddUpUntilTheyAreTaken) {
    fake_launcher launcher;
    launcher.send(elastic::hosts_changed{.removed = true});
    launcher.send(elastic::hosts_changed{.added = true});
    launcher.send(elastic::lost{0, {2}, "behind them"});
    EXPECT_TRUE(launcher.link->is_broken(0, duration{60}));
    EXPECT_EQ(launcher.link->take_host_changes(), (elastic::hosts_changed{true, true}));
    EXPECT_EQ(launcher.link->take_host_changes(), elastic::hosts_changed{});
}

TEST(MemberLink, ChildrenDoNotHaveIt) {
    fake_launcher launcher;
    EXPECT_EQ(::fcntl(launcher.theirs, F_GETFD), FD_CLOEXEC);
    pid_t const child = ::fork();
    if (child == 0) {
        bool refused = false;
        try {
            launcher.link->announce();
        } catch (comm_error const&) {
            refused = true;
        }
        ::_exit(refused && ::fcntl(launcher.theirs, F_GETFD) < 0 ? 0 : 1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    launcher.link->announce();
    EXPECT_EQ(launcher.receive(), elastic::message{elastic::announce{}});
}

TEST(MemberLink, MessagesOfAnotherVersionAreLeftAlone) {
    EXPECT_EQ(elastic::events_descriptor(elastic::events_value(7)), 7);
    for (auto const* value : {"", "7", "7/1", "/2", "-7/2", "x/2", "7x/2", "99999999999/2"})
        EXPECT_EQ(elastic::events_descriptor(value), -1) << value;
}

TEST(MemberLink, WhatIsNoSocketIsLeftAlone) {
    EXPECT_EQ(member_link::open({}), nullptr);
    EXPECT_EQ(member_link::open({{"MUSTER_EVENTS", "x"}}), nullptr);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EXPECT_EQ(member_link::open({{"MUSTER_EVENTS", elastic::events_value(ends[0])}}), nullptr);
    EXPECT_EQ(::fcntl(ends[0], F_GETFD), 0);
    ::close(ends[0]), ::close(ends[1]);
}

}  // namespace
}  // namespace muster
