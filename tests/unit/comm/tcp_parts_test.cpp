// The parts of the backend tcp: messages, proofs and addresses as bytes; strangers at the port; the order in which elements are combined.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/process/network.hpp"
#include "comm/tcp/handshake.hpp"
#include "comm/tcp/line.hpp"
#include "comm/tcp/listener.hpp"
#include "ranks_as_children.hpp"

namespace muster {
namespace {

using namespace tcp;
using testing::HasSubstr;

TEST(tcp_frames, are_read_as_they_were_written) {
    frame what;
    what.step = 7;
    what.sequence = 123456;
    what.signature = ~std::uint64_t{0};
    what.count = 9;
    what.bytes = std::uint64_t{1} << 40;
    auto bytes = write_frame(what);
    EXPECT_EQ(read_frame(bytes), what);
    EXPECT_EQ(read_frame(std::span(bytes).first(frame_bytes - 1)), std::nullopt);
    bytes[0] ^= std::byte{1};
    EXPECT_EQ(read_frame(bytes), std::nullopt);
    what.what = frame::kind::gave_up;  // whose words would fill the memory
    EXPECT_EQ(read_frame(write_frame(what)), std::nullopt);
    what.bytes = longest_blame;
    EXPECT_EQ(read_frame(write_frame(what)), what);
    what.what = static_cast<frame::kind>(9);
    EXPECT_EQ(read_frame(write_frame(what)), std::nullopt);
}

TEST(tcp_handshake, two_ranks_agree_and_nobody_else_does) {
    auto const one = make_key_pair(), other = make_key_pair(), stranger = make_key_pair();
    auto const key = agree(one, other.open, "world");
    EXPECT_EQ(key, agree(other, one.open, "world"));
    EXPECT_NE(key, agree(one, other.open, "another world"));
    EXPECT_NE(key, agree(stranger, other.open, "world"));
    EXPECT_NE(agree(one, public_key{}, "world"), agree(one, public_key{}, "world")) << "a point that gives no secret";
    auto const text = write_greeting({greeting::kind::dial, id_of_world("world"), 0, 1, make_nonce()});
    nonce const of_called = make_nonce();
    auto const proof = prove(key, end_of_link::caller, text, of_called);
    EXPECT_TRUE(is_proven(prove(key, end_of_link::caller, text, of_called), proof));
    EXPECT_FALSE(is_proven(prove(key, end_of_link::called, text, of_called), proof)) << "the other end's, sent back";
    EXPECT_FALSE(is_proven(prove(key, end_of_link::caller, text, make_nonce()), proof)) << "of an earlier connection";
    EXPECT_EQ(read_greeting(text)->to, 1);
    EXPECT_EQ(read_greeting(std::span(text).first(greeting_bytes - 1)), std::nullopt);
}

TEST(tcp_addresses, are_texts) {
    endpoint const where{"n1", 4711, {"10.0.0.1", "fd00::1"}, make_key_pair().open};
    EXPECT_EQ(parse_endpoint(to_text(where), "MUSTER_ADDRESSES"), where);
    std::string const key(64, 'a');
    for (auto const& wrong :
         {std::string("n1"), "n1/0/10.0.0.1/" + key, "n1/4711/here/" + key, "n1/4711//" + key, "n1/4711/10.0.0.1/" + key + "a",
          "n1/4711/10.0.0.1/" + key.substr(1) + "x", "n1/70000/10.0.0.1/" + key})
        EXPECT_THROW(parse_endpoint(wrong, "MUSTER_ADDRESSES"), parse_error) << wrong;
}

unique_fd call(endpoint const& where) {
    auto const address = parse_address(where.addresses.front(), where.port);
    unique_fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(made.get(), address.get(), address.length), 0);
    return made;
}

/// Strangers who know the port, and the world's name as it is seen on the network: they say nothing, nonsense, or that they are rank 0, and keep
/// their connections.
std::vector<unique_fd> strangers(endpoint const& where, world_id const& world) {
    std::vector<unique_fd> callers;
    for (int i = 0; i < 300; ++i) {
        callers.push_back(call(where));
        greeting what{i % 5 == 3 ? greeting::kind::call_me : greeting::kind::dial, world, i % 7 - 2, i % 5 == 4 ? 99 : 1,
                      make_nonce()};
        if (i % 5 == 2) what.world = {};
        auto text = write_greeting(what);
        if (i % 5 == 1) text.fill('x');
        if (i % 5 != 0) static_cast<void>(::send(callers.back().get(), text.data(), text.size(), MSG_NOSIGNAL));
        nonce const no_proof = make_nonce();
        if (i % 2 == 0) static_cast<void>(::send(callers.back().get(), no_proof.data(), no_proof.size(), MSG_NOSIGNAL));
    }
    return callers;
}

TEST(tcp_strangers, neither_join_nor_disturb) {
    address_board const board;
    ranks_as_children ranks(3, [&](identity const& who) {
        auto const options = options_of("tcp", who, board, 60);
        std::vector<unique_fd> callers;
        // Rank 2 is the stranger, too, before rank 1 has met rank 0, and again later.
        auto const id = id_of_world("tcp/" + who.nspace + "#0");
        if (who.rank == 2) callers = strangers(parse_endpoint(options.addresses[1], "rank 1"), id);
        auto all = communicator::create(who, options);
        for (int turn = 0; turn < 20; ++turn) {
            if (who.rank == 2 && turn == 10)
                for (auto& each : strangers(parse_endpoint(options.addresses[1], "rank 1"), id))
                    callers.push_back(std::move(each));
            std::vector<float> values(static_cast<std::size_t>(1 + turn * 10000), 1.0f);
            all.allreduce("w", view_of(std::span(values)), reduction::sum).wait();
            if (!std::ranges::all_of(values, [](float each) { return each == 3; })) throw std::runtime_error("a wrong sum");
        }
        all.close();
    });
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.words_of(rank), "fine") << rank;
}

/// The two ends of a connection over loopback.
std::pair<unique_socket, unique_socket> connection() {
    unique_fd const listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t length = sizeof where;
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    EXPECT_EQ(
        ::bind(listener.get(), address, length) | ::listen(listener.get(), 1) | ::getsockname(listener.get(), address, &length),
        0);
    auto one = own_socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(one.get(), address, length), 0);
    return {std::move(one), own_socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))};
}

TEST(tcp_lines, the_word_of_a_rank_that_gives_up_is_not_lost_with_its_connection) {
    auto [one, other] = connection();
    line gives_up, reads;
    gives_up.open(std::move(one));
    reads.open(std::move(other));
    std::vector<std::byte> sent(8000000), received(sent.size());
    transfers counts;
    // Both send more than the sockets hold, so that each has something unread when it ends.
    frame const head{.what = frame::kind::data, .signature = 1, .count = sent.size(), .bytes = sent.size()};
    gives_up.send(1, head, sent.data(), counts);
    reads.send(1, head, sent.data(), counts);
    reads.receive(1, head, received.data(), counts);
    gives_up.drop();
    gives_up.tell({.what = frame::kind::gave_up}, "rank 2 is gone");
    while (gives_up.part()) reads.pump(true);
    gives_up.close();
    while (reads.ended() == line::end::none) reads.pump(true);
    EXPECT_EQ(reads.ended(), line::end::gave_up);
    EXPECT_EQ(reads.words(), "rank 2 is gone");
}

TEST(tcp_lines, what_came_before_the_end_is_read_by_later_collectives) {
    auto [one, other] = connection();
    line ends, reads;
    ends.open(std::move(one));
    reads.open(std::move(other));
    transfers counts;
    std::byte const sent{7};
    frame const head{.what = frame::kind::data, .signature = 1, .count = 1, .bytes = 1};
    for (int i = 0; i < 2; ++i) ends.send(1, head, &sent, counts);
    ends.close();
    for (int i = 0; i < 2; ++i) {
        reads.pump(true);
        EXPECT_EQ(reads.ended(), line::end::none) << "a message is left";
        std::byte got{};
        transfers expected;
        reads.receive(1, head, &got, expected);
        reads.pump(true);
        EXPECT_TRUE(expected.through());
        EXPECT_EQ(got, sent);
    }
    reads.pump(true);
    EXPECT_EQ(reads.ended(), line::end::lost);
}

/// Every rank's result is told to rank 0, which compares their bits, those of a second run, and for direct exchange those of the order of the ranks.
void compare_bits(communicator& all, std::size_t count, bool in_order) {
    auto const value = [](std::size_t i, int rank) {
        return 1.0f / static_cast<float>(1 + (i * 31 + static_cast<std::size_t>(rank) * 17) % 1009);
    };
    std::vector<float> in(count), first(count), second(count);
    for (std::size_t i = 0; i < count; ++i) in[i] = value(i, all.rank());
    for (auto* out : {&first, &second})
        all.allreduce("w", input_of(std::span<float const>(in)), view_of(std::span(*out)), reduction::sum).wait();
    std::vector<float> theirs(count * static_cast<std::size_t>(all.size()));
    all.allgather("w", view_of(std::span(first)), view_of(std::span(theirs))).wait();
    bool same = std::memcmp(first.data(), second.data(), count * sizeof(float)) == 0;
    for (int rank = 0; rank < all.size(); ++rank)
        same =
            same && std::memcmp(first.data(), theirs.data() + static_cast<std::size_t>(rank) * count, count * sizeof(float)) == 0;
    for (std::size_t i = 0; i < count && in_order; ++i) {
        float sum = value(i, 0);
        for (int rank = 1; rank < all.size(); ++rank) sum += value(i, rank);
        same = same && sum == first[i];
    }
    if (!same) throw std::runtime_error(fmt::format("other bits for {} elements", count));
}

TEST(tcp_results, have_the_same_bits_on_all_ranks_and_every_time) {
    for (int const direct_ranks : {16, 0}) {
        address_board const board;
        ranks_as_children ranks(5, [&](identity const& who) {
            auto options = options_of("tcp", who, board, 60);
            options.direct_ranks = direct_ranks;
            auto all = communicator::create(who, options);
            for (std::size_t const count : {1u, 1000u, 50000u, 800001u}) compare_bits(all, count, direct_ranks != 0);
            all.close();
        });
        for (int rank = 0; rank < 5; ++rank) EXPECT_EQ(ranks.words_of(rank), "fine") << rank << " of " << direct_ranks;
    }
}

}  // namespace
}  // namespace muster
