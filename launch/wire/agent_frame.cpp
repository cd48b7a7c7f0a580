#include "launch/wire/agent_frame.hpp"

#include <cstdint>

namespace muster {

namespace {

constexpr unsigned char event_mark = 0x12;
constexpr std::size_t number_bytes = 4;

void append_number(std::string& bytes, int number) {
    for (int shift = 24; shift >= 0; shift -= 8)
        bytes.push_back(static_cast<char>(static_cast<std::uint32_t>(number) >> shift & 0xff));
}

int read_number(std::string_view bytes) {
    std::uint32_t number = 0;
    for (std::size_t i = 0; i < number_bytes; ++i) number = number << 8 | static_cast<unsigned char>(bytes[i]);
    return static_cast<int>(number);
}

}  // namespace

namespace wire {

std::string encode(rank_frame const& one) {
    std::string frame;
    frame.reserve(1 + number_bytes + one.bytes.size());
    frame.push_back(static_cast<char>(one.what));
    append_number(frame, one.rank);
    frame.append(one.bytes);
    return frame;
}

std::optional<rank_frame> read_rank_frame(std::string_view frame) noexcept {
    if (frame.size() < 1 + number_bytes) return std::nullopt;
    auto const what = static_cast<rank_frame::kind>(frame.front());
    if (what != rank_frame::kind::frame && what != rank_frame::kind::closed) return std::nullopt;
    return rank_frame{read_number(frame.substr(1)), frame.substr(1 + number_bytes), what};
}

}  // namespace wire

std::string encode(mpi_event const& event) {
    std::string frame{static_cast<char>(event_mark), static_cast<char>(event.what)};
    append_number(frame, event.code);
    return frame;
}

std::optional<mpi_event> read_event(std::string_view frame) noexcept {
    if (frame.size() != 2 + number_bytes || static_cast<unsigned char>(frame[0]) != event_mark ||
        static_cast<unsigned char>(frame[1]) > static_cast<unsigned char>(mpi_event::kind::ping))
        return std::nullopt;
    return mpi_event{static_cast<mpi_event::kind>(frame[1]), read_number(frame.substr(2))};
}

}  // namespace muster

namespace muster::wire {

std::string encode(output_piece const& piece) {
    std::string frame;
    frame.reserve(1 + piece.bytes.size());
    frame.push_back(static_cast<char>(piece.what));
    frame.append(piece.bytes);
    return frame;
}

std::optional<output_piece> read_output(std::string_view frame) noexcept {
    if (frame.empty() || static_cast<unsigned char>(frame.front()) > static_cast<unsigned char>(output_piece::kind::err))
        return std::nullopt;
    return output_piece{static_cast<output_piece::kind>(frame.front()), frame.substr(1)};
}

}  // namespace muster::wire
