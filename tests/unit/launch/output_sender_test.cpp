#include "launch/shim/launcher_line.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "launch/wire/messages.hpp"

namespace muster {
namespace {

using piece_kind = wire::output_piece::kind;

TEST(output_frames, come_back_as_they_were_and_are_no_messages) {
    for (auto const what : {piece_kind::note, piece_kind::out, piece_kind::err})
        for (auto const& bytes : {std::string(), std::string("line\n"), std::string("\x82\x00\xff\n\x01", 5)}) {
            auto const frame = wire::encode(wire::output_piece{what, bytes});
            auto const piece = wire::read_output(frame);
            ASSERT_TRUE(piece);
            EXPECT_EQ(*piece, (wire::output_piece{what, bytes}));
        }
    for (auto const& message : {wire::message(wire::gone{}), wire::message(wire::pong{1}), wire::message(wire::job{})})
        EXPECT_FALSE(wire::read_output(wire::encode(message))) << message.index();
    EXPECT_FALSE(wire::read_output(""));
    EXPECT_FALSE(wire::read_output("\x03line\n"));
    EXPECT_FALSE(wire::read_output("\xffline\n"));
}

struct receiver {
    std::vector<std::string> frames;
    std::string out, err, notes;
    void operator()(std::string_view frame) {
        frames.emplace_back(frame);
        auto const piece = wire::read_output(frame);
        ASSERT_TRUE(piece);
        auto& text = piece->what == piece_kind::out ? out : piece->what == piece_kind::err ? err : notes;
        text += piece->bytes;
    }
};

TEST(output_sender, sends_no_more_than_there_is_room_for) {
    receiver got;
    output_sender sender([&](std::string_view frame) { got(frame); }, 10);
    sender.write(1, "0123456");
    EXPECT_TRUE(sender.sent_all());
    sender.write(2, "abcdef");
    sender.write(1, "789");
    EXPECT_EQ(got.out + "|" + got.err, "0123456|abc");
    EXPECT_TRUE(sender.congested());
    sender.add_room(4);
    EXPECT_EQ(got.out + "|" + got.err, "01234567|abcdef") << "in order, of both streams";
    EXPECT_FALSE(sender.sent_all());
    sender.add_room(100);
    EXPECT_EQ(got.out, "0123456789");
    EXPECT_FALSE(sender.congested());
    EXPECT_TRUE(sender.sent_all());
}

TEST(output_sender, cuts_large_blocks) {
    receiver got;
    output_sender sender([&](std::string_view frame) { got(frame); }, 10 << 20);
    std::string block;
    for (int i = 0; i < 300'000; ++i) block += static_cast<char>(i * 31);
    sender.write(1, block);
    EXPECT_EQ(got.out, block);
    EXPECT_EQ(got.frames.size(), (block.size() + wire::largest_output_bytes - 1) / wire::largest_output_bytes);
}

TEST(output_sender, keeps_a_note_whole) {
    receiver got;
    output_sender sender([&](std::string_view frame) { got(frame); }, 2);
    sender.note("muster: a note\n");
    EXPECT_EQ(got.frames.size(), 1u);
    EXPECT_EQ(got.notes, "muster: a note\n");
    sender.write(1, "xyz");
    EXPECT_EQ(got.out, "xy") << "a note takes no room: the launcher gives none back for it";
}

TEST(output_sender, drops_all_once_it_is_closed) {
    receiver got;
    output_sender sender([&](std::string_view frame) { got(frame); }, 1);
    sender.write(1, "ab");
    sender.close();
    EXPECT_TRUE(sender.sent_all());
    EXPECT_FALSE(sender.congested()) << "it would hold a rank that nobody hears";
    sender.write(1, "cd");
    sender.add_room(100);
    EXPECT_EQ(got.out, "a");
}

}  // namespace
}  // namespace muster
