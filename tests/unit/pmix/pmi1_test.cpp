#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <optional>

#include "base/unique_fd.hpp"
#include "pmix/library/peer_uid.hpp"
#include "pmix/library/random_bits.hpp"
#include "pmix/pmi1/pmi1_job.hpp"
#include "pmix/pmi1/pmi1_server.hpp"
#include "pmix/pmi1/pmi1_wire.hpp"

namespace muster::pmix {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using kind = server_event::kind;

TEST(pmi1_wire, takes_lines_apart) {
    auto const message = parse_pmi1("cmd=put kvsname=job key=a value=b=c d=");
    ASSERT_TRUE(message);
    EXPECT_EQ(message->find("value"), "b=c");
    EXPECT_EQ(message->find("d"), "");
    EXPECT_EQ(message->find("e"), std::nullopt);
    EXPECT_EQ(parse_pmi1("a=7")->number("a"), 7);
    auto const abort = parse_pmi1("cmd=abort exitcode=42 message=application called MPI_Abort(comm=0, 42) - process 0");
    ASSERT_TRUE(abort);
    EXPECT_EQ(abort->number("exitcode"), 42);
    EXPECT_EQ(abort->find("message"), "application called MPI_Abort(comm=0, 42) - process 0");
    EXPECT_EQ(parse_pmi1("a=99999999999")->number("a"), std::nullopt);
    for (std::string const& bad : {std::string(), std::string("  "), std::string("cmd"), std::string("=x"), std::string("a=b c"),
                                   std::string("a=b\0c", 5), "a=" + std::string(5000, 'x')})
        EXPECT_FALSE(parse_pmi1(bad)) << bad;
}

TEST(pmi1_wire, gathers_lines_from_pieces) {
    pmi1_line_buffer buffer;
    buffer.append("cmd=");
    EXPECT_EQ(buffer.next(), std::nullopt);
    buffer.append("init\ncmd=finalize\ncm");
    EXPECT_EQ(buffer.next(), "cmd=init");
    EXPECT_EQ(buffer.next(), "cmd=finalize");
    EXPECT_EQ(buffer.next(), std::nullopt);
    EXPECT_FALSE(buffer.overflown());
    buffer.append(std::string(pmi1_longest_line, 'x'));
    EXPECT_TRUE(buffer.overflown());
}

/// A job, and what it answered to the last line.
struct talk {
    pmi1_job job;
    std::vector<pmi1_reply> replies;
    std::vector<server_event> events;

    explicit talk(int size) : job("kvs", size) {}
    std::string say(int rank, std::string const& line) {
        replies.clear();
        if (!job.take(rank, line, replies, events)) return "refused";
        return replies.empty() ? "" : replies.front().text;
    }
};

TEST(pmi1_job, answers_what_a_client_asks_at_its_start) {
    talk t(4);
    EXPECT_EQ(t.job.greeting(2), "cmd=initack\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n");
    EXPECT_EQ(t.say(2, "cmd=init pmi_version=1 pmi_subversion=1"), "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    EXPECT_EQ(t.say(2, "cmd=get_maxes"), "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n");
    EXPECT_EQ(t.say(2, "cmd=get_appnum"), "cmd=appnum appnum=0\n");
    EXPECT_EQ(t.say(2, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=kvs\n");
    EXPECT_EQ(t.say(2, "cmd=get_universe_size"), "cmd=universe_size size=4\n");
    EXPECT_THAT(t.say(2, "cmd=get kvsname=kvs key=PMI_process_mapping"), HasSubstr("rc=0 msg=success value=(vector,(0,1,4))"));
    EXPECT_EQ(t.say(2, "cmd=finalize"), "cmd=finalize_ack\n");
    ASSERT_EQ(t.events.size(), 2U);
    EXPECT_EQ(t.events[0].what, kind::connected);
    EXPECT_EQ(t.events[1].what, kind::finalized);
    EXPECT_EQ(t.events[1].rank, 2);
}

TEST(pmi1_job, keeps_values) {
    talk t(2);
    EXPECT_THAT(t.say(0, "cmd=put kvsname=kvs key=a value=1=2"), HasSubstr("rc=0"));
    EXPECT_EQ(t.say(1, "cmd=get kvsname=kvs key=a"), "cmd=get_result rc=0 msg=success value=1=2\n");
    EXPECT_THAT(t.say(1, "cmd=get kvsname=kvs key=b"), HasSubstr("rc=-1"));
    EXPECT_THAT(t.say(1, "cmd=get kvsname=other key=a"), HasSubstr("rc=-1"));
    EXPECT_THAT(t.say(1, "cmd=put kvsname=other key=a value=1"), HasSubstr("rc=-1"));
    EXPECT_THAT(t.say(1, "cmd=put kvsname=kvs key=" + std::string(65, 'k') + " value=1"), HasSubstr("rc=-1"));
    EXPECT_THAT(t.say(1, "cmd=put kvsname=kvs key=k value=" + std::string(1025, 'v')), HasSubstr("rc=-1"));
    EXPECT_THAT(t.say(1, "cmd=getbyidx kvsname=kvs idx=1"), HasSubstr("rc=0 nextidx=2 key=a val=1=2"));
    EXPECT_THAT(t.say(1, "cmd=getbyidx kvsname=kvs idx=2"), HasSubstr("rc=-2"));
    EXPECT_THAT(t.say(1, "cmd=getbyidx kvsname=kvs idx=-1"), HasSubstr("rc=-2"));
}

TEST(pmi1_job, barrier_lets_all_go_at_once) {
    talk t(3);
    EXPECT_EQ(t.say(0, "cmd=barrier_in"), "");
    EXPECT_EQ(t.say(0, "cmd=barrier_in"), "") << "twice by the same rank counts once";
    EXPECT_EQ(t.say(2, "cmd=barrier_in"), "");
    t.job.leave(2);
    EXPECT_EQ(t.say(1, "cmd=barrier_in"), "") << "rank 2 is gone";
    t.say(2, "cmd=barrier_in");
    EXPECT_THAT(t.replies, ElementsAre(pmi1_reply{0, "cmd=barrier_out\n"}, pmi1_reply{1, "cmd=barrier_out\n"},
                                       pmi1_reply{2, "cmd=barrier_out\n"}));
    EXPECT_EQ(t.say(1, "cmd=barrier_in"), "") << "and the next one starts anew";
}

TEST(pmi1_job, abort_carries_the_code_and_gets_no_answer) {
    talk t(2);
    EXPECT_EQ(t.say(1, "cmd=abort exitcode=42 message=application called MPI_Abort(MPI_COMM_WORLD, 42) - process 1"), "");
    ASSERT_EQ(t.events.size(), 1U);
    EXPECT_EQ(t.events[0].what, kind::aborted);
    EXPECT_EQ(t.events[0].code, 42);
    EXPECT_EQ(t.events[0].rank, 1);
}

TEST(pmi1_job, names_are_published_once) {
    talk t(1);
    EXPECT_THAT(t.say(0, "cmd=lookup_name service=s"), HasSubstr("rc=1"));
    EXPECT_THAT(t.say(0, "cmd=publish_name service=s port=p"), HasSubstr("rc=0"));
    EXPECT_THAT(t.say(0, "cmd=publish_name service=s port=q"), HasSubstr("rc=1"));
    EXPECT_THAT(t.say(0, "cmd=lookup_name service=s"), HasSubstr("port=p"));
    EXPECT_THAT(t.say(0, "cmd=unpublish_name service=s"), HasSubstr("rc=0"));
    EXPECT_THAT(t.say(0, "cmd=unpublish_name service=s"), HasSubstr("rc=1"));
}

TEST(pmi1_job, spawn_is_refused_in_one_answer) {
    talk t(1);
    for (auto const* line : {"mcmd=spawn", "nprocs=1", "execname=a b", "totspawns=2", "spawnssofar=1", "endcmd", "mcmd=spawn",
                             "totspawns=2", "spawnssofar=2"})
        EXPECT_EQ(t.say(0, line), "") << line;
    EXPECT_THAT(t.say(0, "endcmd"), HasSubstr("cmd=spawn_result rc=-1"));
    EXPECT_THAT(t.say(0, "cmd=get_appnum"), HasSubstr("appnum=0"));
}

TEST(pmi1_job, refuses_what_is_no_command) {
    talk t(1);
    for (auto const* line : {"", "hello", "cmd=", "cmd=unknown", "GET / HTTP/1.1"}) EXPECT_EQ(t.say(0, line), "refused") << line;
}

TEST(peer_uid, is_read_from_the_kernels_table) {
    std::string const table =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1 0 20 4 30 10 -1\n"
        "   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 20 4 30 10 -1\n";
    EXPECT_EQ(uid_in_proc_net_tcp(table, 50000, 8080), 1000U);
    EXPECT_EQ(uid_in_proc_net_tcp(table, 8080, 50000), 0U);
    EXPECT_EQ(uid_in_proc_net_tcp(table, 50001, 8080), std::nullopt);
    EXPECT_EQ(uid_in_proc_net_tcp("   1: 0100007F:C350 0100007F:1F90", 50000, 8080), std::nullopt);
    EXPECT_EQ(uid_in_proc_net_tcp("", 1, 2), std::nullopt);
    auto closing = table;
    closing.replace(closing.find(" 01 00000000:00000000 00:00000000 00000000  1000"), 3, " 06");
    EXPECT_EQ(uid_in_proc_net_tcp(closing, 50000, 8080), std::nullopt) << "a closed connection shows user 0, whoever had it";
}

/// A client of the server's port, in this same thread.
struct client {
    unique_fd fd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    pmi1_server& server;
    std::vector<server_event> events;

    client(pmi1_server& the_server, environment const& variables, in_addr_t from = INADDR_LOOPBACK) : server(the_server) {
        auto const where = variables.get_or("PMI_PORT", "");
        EXPECT_THAT(where, testing::StartsWith("127.0.0.1:"));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(from);
        EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(where.substr(10))));
        EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    void send(std::string const& text) const {
        EXPECT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    }
    /// What comes until there is `end`, or the connection's end.
    std::string receive(std::string const& end) {
        std::string all;
        while (all.find(end) == std::string::npos) {
            pollfd fds[2] = {{fd.get(), POLLIN, 0}, {server.event_fd(), POLLIN, 0}};
            if (poll(fds, 2, 10000) <= 0) return all + "(nothing more in 10 s)";
            for (auto& event : server.poll()) events.push_back(std::move(event));
            if ((fds[0].revents & (POLLIN | POLLHUP)) == 0) continue;
            char buffer[512];
            auto const count = read(fd.get(), buffer, sizeof buffer);
            if (count <= 0) return all + "(closed)";
            all.append(buffer, static_cast<std::size_t>(count));
        }
        return all;
    }
};

struct pmi1_port : testing::Test {
    job const description{.nspace = "a job",
                          .host = "h",
                          .world_size = 2,
                          .session_dir = {},
                          .executable = {},
                          .cpusets = {},
                          .shared_memory_dir = {}};
    pmi1_server server{description};

    environment of(int rank) {
        environment variables{{"PMI_SIZE", "9"}, {"PMI_FD", "3"}, {"PMI_RANK", "0"}};
        server.set_client_environment(rank, variables);
        return variables;
    }
};

TEST_F(pmi1_port, environment_leads_to_the_port_and_nowhere_else) {
    auto const variables = of(1);
    for (auto const* name : {"PMI_SIZE", "PMI_FD", "PMI_RANK"}) EXPECT_FALSE(variables.has(name)) << name;
    EXPECT_EQ(variables.get("MPI_LOCALRANKID"), "1");
    EXPECT_EQ(variables.get("MPI_LOCALNRANKS"), "2");
    EXPECT_NE(variables.get("PMI_ID"), of(0).get("PMI_ID"));
}

TEST_F(pmi1_port, greets_the_ranks_and_no_others) {
    client one(server, of(1));
    one.send("cmd=initack pmiid=" + *of(1).get("PMI_ID") + "\n");
    EXPECT_EQ(one.receive("debug=0\n"), "cmd=initack\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n");
    one.send("cmd=get_my_kvsname\n");
    EXPECT_EQ(one.receive("\n"), "cmd=my_kvsname kvsname=a_job\n") << "one word";

    for (auto const& first :
         {std::string("cmd=initack pmiid=1\n"), std::string("cmd=initack\n"), std::string("cmd=init pmi_version=1\n"),
          std::string(9000, 'x'), "cmd=initack pmiid=" + *of(1).get("PMI_ID") + "\n"}) {
        client other(server, of(1));
        other.send(first);
        EXPECT_THAT(other.receive("never"), testing::EndsWith("(closed)")) << first.substr(0, 40);
    }
    one.send("cmd=get_appnum\n");
    EXPECT_EQ(one.receive("\n"), "cmd=appnum appnum=0\n") << "the rank itself is not disturbed";
}

TEST_F(pmi1_port, takes_callers_of_127_0_0_1_only) {
    client other(server, of(1), INADDR_LOOPBACK + 1);
    EXPECT_EQ(other.receive("never"), "(closed)");
    ASSERT_EQ(other.events.size(), 1U);
    EXPECT_THAT(other.events[0].text, HasSubstr("refused a connection"));
    client another(server, of(1), INADDR_LOOPBACK + 1);
    EXPECT_EQ(another.receive("never"), "(closed)");
    EXPECT_THAT(another.events, IsEmpty()) << "the others are counted, not told";
}

TEST_F(pmi1_port, knows_the_user_of_a_caller_and_not_that_of_one_who_left) {
    pmi1_listener listener;
    peer_uid_lookup const users(listener.fd());
    environment const where{{"PMI_PORT", "127.0.0.1:" + std::to_string(listener.port())}};
    std::vector<server_event> events;
    auto one = std::make_optional<client>(server, where);
    auto const accepted = listener.accept_some(events);
    ASSERT_EQ(accepted.size(), 1U);
    EXPECT_EQ(users.find(accepted[0].get()), geteuid());
    one.reset();
    EXPECT_EQ(users.find(accepted[0].get()), std::nullopt);
    EXPECT_EQ(users.find(listener.fd()), std::nullopt);
}

TEST_F(pmi1_port, a_turn_takes_in_a_few_callers) {
    pmi1_listener listener;
    environment const where{{"PMI_PORT", "127.0.0.1:" + std::to_string(listener.port())}};
    std::deque<client> many;
    for (int i = 0; i < pmi1_listener::callers_a_turn + 4; ++i) many.emplace_back(server, where);
    std::vector<server_event> events;
    EXPECT_EQ(listener.accept_some(events).size(), static_cast<std::size_t>(pmi1_listener::callers_a_turn));
    EXPECT_EQ(listener.accept_some(events).size(), 4U);
    EXPECT_THAT(events, IsEmpty());
}

TEST_F(pmi1_port, of_too_many_silent_callers_the_oldest_goes) {
    std::deque<client> silent;
    for (int i = 0; i < 2 + 32; ++i) silent.emplace_back(server, of(0));
    client rank(server, of(0));
    EXPECT_EQ(silent.front().receive("never"), "(closed)");
    rank.send("cmd=initack pmiid=" + *of(0).get("PMI_ID") + "\n");
    EXPECT_THAT(rank.receive("debug=0\n"), HasSubstr("rank=0"));
}

TEST_F(pmi1_port, guessing_is_slow) {
    for (int i = 0; i < 100; ++i) {
        client guess(server, of(0));
        guess.send("cmd=initack pmiid=1\n");
        EXPECT_EQ(guess.receive("never"), "(closed)");
    }
    client rank(server, of(0));
    rank.send("cmd=initack pmiid=" + *of(0).get("PMI_ID") + "\n");
    EXPECT_THAT(server.poll(), IsEmpty());
    pollfd answer{rank.fd.get(), POLLIN, 0};
    EXPECT_EQ(poll(&answer, 1, 0), 0) << "not let in at once";
    EXPECT_THAT(rank.receive("debug=0\n"), HasSubstr("rank=0")) << "but after a while";
}

job over_nodes(std::vector<std::vector<int>> const& ranks) {
    job whole;
    whole.nspace = "job";
    for (auto const& of_node : ranks) {
        whole.nodes.push_back({"n" + std::to_string(whole.nodes.size()), of_node});
        whole.world_size = (whole.nodes.size() == 1 ? 0 : whole.world_size) + static_cast<int>(of_node.size());
    }
    return whole;
}

TEST(pmi1_nodes, are_mapped_in_blocks) {
    EXPECT_EQ(pmi1_mapping(over_nodes({{0, 1, 2}})), "(vector,(0,1,3))");
    EXPECT_EQ(pmi1_mapping(over_nodes({{0, 1}, {2, 3}})), "(vector,(0,2,2))");
    EXPECT_EQ(pmi1_mapping(over_nodes({{0}, {1, 2, 3}, {4, 5}})), "(vector,(0,1,1),(1,1,3),(2,1,2))");
    EXPECT_EQ(pmi1_mapping(over_nodes({{0, 2}, {1, 3}})), "(vector,(0,2,1))") << "gone through again and again";
    EXPECT_EQ(pmi1_mapping(over_nodes({{0, 2, 3}, {1}})), "(vector,(0,2,1),(0,1,2))");
}

TEST(pmi1_nodes, meet_at_a_barrier_and_learn_what_was_put) {
    pmi1_job first("job", 3, 2, "(vector,(0,1,2),(1,1,1))");
    pmi1_job second("job", 3, 1, "(vector,(0,1,2),(1,1,1))");
    std::vector<pmi1_reply> replies;
    std::vector<server_event> events;
    EXPECT_TRUE(first.take(0, "cmd=put kvsname=job key=P0 value=a=b", replies, events));
    EXPECT_TRUE(second.take(2, "cmd=put kvsname=job key=P2 value=c", replies, events));
    replies.clear();
    EXPECT_TRUE(first.take(0, "cmd=barrier_in", replies, events));
    EXPECT_EQ(first.take_part(), std::nullopt) << "rank 1 is not there yet";
    EXPECT_TRUE(first.take(1, "cmd=barrier_in", replies, events));
    EXPECT_TRUE(second.take(2, "cmd=barrier_in", replies, events));
    EXPECT_THAT(replies, IsEmpty()) << "nobody goes on before all nodes are there";
    auto const parts = first.take_part().value_or("?") + second.take_part().value_or("?");
    EXPECT_EQ(parts, "P0 a=b\nP2 c\n");
    first.finish_barrier(parts, replies);
    EXPECT_THAT(replies, ElementsAre(pmi1_reply{0, "cmd=barrier_out\n"}, pmi1_reply{1, "cmd=barrier_out\n"}));
    replies.clear();
    second.finish_barrier(parts, replies);
    EXPECT_THAT(replies, ElementsAre(pmi1_reply{2, "cmd=barrier_out\n"}));
    replies.clear();
    EXPECT_TRUE(second.take(2, "cmd=get kvsname=job key=P0", replies, events));
    EXPECT_THAT(replies.at(0).text, HasSubstr("value=a=b\n"));
    EXPECT_TRUE(second.take(2, "cmd=barrier_in", replies, events));
    EXPECT_EQ(second.take_part(), "") << "each part is given once";
}

TEST(job_name, is_known_to_nobody) {
    auto const name = make_job_name("node1");
    EXPECT_THAT(name, testing::MatchesRegex("muster\\.node1\\.[0-9]+\\.[0-9a-f]{32}"));
    EXPECT_NE(name, make_job_name("node1"));
}

TEST_F(pmi1_port, a_rank_may_run_one_program_after_the_other) {
    auto const hello = "cmd=initack pmiid=" + *of(0).get("PMI_ID") + "\n";
    {
        client first(server, of(0));
        first.send(hello);
        EXPECT_THAT(first.receive("debug=0\n"), HasSubstr("rank=0"));
        first.send("cmd=finalize\n");
        EXPECT_EQ(first.receive("\n"), "cmd=finalize_ack\n");
    }
    pollfd fd{server.event_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&fd, 1, 10000), 1);
    server.poll();  // sees the first one gone
    client second(server, of(0));
    second.send(hello);
    EXPECT_THAT(second.receive("debug=0\n"), HasSubstr("rank=0"));
}

}  // namespace
}  // namespace muster::pmix
