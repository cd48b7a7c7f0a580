#include "launch/wire/frame_channel.hpp"

#include <gtest/gtest.h>

#include "launch/wire/messages.hpp"

namespace muster {
namespace {

TEST(agent_frames, come_back_as_they_were) {
    for (auto const& one :
         {wire::rank_frame{0, "x"}, wire::rank_frame{79'999, std::string_view("\0\xff", 2)},
          wire::rank_frame{wire::rank_frame::all, ""}, wire::rank_frame{3, "", wire::rank_frame::kind::closed}}) {
        auto const frame = wire::encode(one);
        EXPECT_EQ(wire::read_rank_frame(frame), one);
        EXPECT_EQ(read_event(frame), std::nullopt);
        for (std::size_t size = 0; size < 5; ++size) EXPECT_EQ(wire::read_rank_frame(frame.substr(0, size)), std::nullopt);
    }
    for (auto const what : {mpi_event::kind::connected, mpi_event::kind::aborted, mpi_event::kind::ping}) {
        mpi_event const event{what, -7};
        EXPECT_EQ(read_event(encode(event)), event);
        EXPECT_EQ(read_event(encode(event) + "x"), std::nullopt);
        EXPECT_EQ(wire::read_rank_frame(encode(event)), std::nullopt);
    }
}

TEST(agent_frames, are_taken_for_nothing_else) {
    for (auto const& frame : {wire::encode(wire::rank_frame{1, "x"}), encode(mpi_event{})}) {
        EXPECT_THROW(wire::decode(frame), std::exception);
        EXPECT_EQ(wire::read_output(frame), std::nullopt);
    }
    for (auto const& frame :
         {wire::encode(wire::message(wire::hello{})), wire::encode(wire::output_piece{wire::output_piece::kind::err, "text"})}) {
        EXPECT_EQ(wire::read_rank_frame(frame), std::nullopt);
        EXPECT_EQ(read_event(frame), std::nullopt);
    }
}

}  // namespace
}  // namespace muster
