// Frames of a host's agent in a remote run: those of its ranks on its one connection to the launcher, and its messages to a shim on its host.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace muster::wire {

// A piece of a rank's output as a frame between its shim and the launcher.

/// One byte for the kind and then the bytes as they are: output is not worth CBOR, which is read byte by byte. No message begins with
/// such a byte, since CBOR's for an array of two is 0x82.
struct output_piece {
    enum class kind : unsigned char {
        note = 0,  ///< a whole line of the shim's own, for standard error
        out = 1,   ///< of the rank's standard output
        err = 2,   ///< of its standard error
    };
    kind what = kind::out;
    std::string_view bytes;
    bool operator==(output_piece const&) const = default;
};

std::string encode(output_piece const& piece);

/// Nothing if the frame is none of these, but perhaps a message. The piece refers to the frame.
std::optional<output_piece> read_output(std::string_view frame) noexcept;

constexpr std::size_t largest_output_bytes = 64u << 10;  ///< of one piece

}  // namespace muster::wire

namespace muster {

namespace wire {

/// A frame of one rank's shim, or for it: the agent passes it on as it is.
struct rank_frame {
    enum class kind : unsigned char {
        frame = 0x10,   ///< no message and no piece of output begins so
        closed = 0x11,  ///< from the agent: the rank's shim has ended or closed its socket
    };
    static constexpr int all = -1;  ///< of the host, from the launcher

    int rank = all;
    std::string_view bytes;
    kind what = kind::frame;
    bool operator==(rank_frame const&) const = default;
};

std::string encode(rank_frame const& one);
/// Nothing if it is not one. Refers to `frame`.
std::optional<rank_frame> read_rank_frame(std::string_view frame) noexcept;

}  // namespace wire

/// What an agent and a shim tell each other, over the socket that the shim has as its descriptor 1, between frames of the launcher: of the
/// rank as the agent's server of PMIx or PMI-1 has seen it, and that the agent runs.
struct mpi_event {
    enum class kind : int {
        connected,  ///< it has initialised its PMI library
        finalized,  ///< it has finalised it
        aborted,    ///< it asks for the whole job to end with `code`, and may wait until it is killed
        settled,    ///< of a shim: the rank has ended; the answer: everything before that has been reported
        ping,       ///< of a shim; the answer: the agent runs
    };
    kind what = kind::connected;
    int code = 0;
    bool operator==(mpi_event const&) const = default;
};

std::string encode(mpi_event const& event);
/// Nothing if the frame is none, but the launcher's.
std::optional<mpi_event> read_event(std::string_view frame) noexcept;

/// Set for a shim whose descriptor 1 is such a socket: frames of frame_channel.hpp, in clear, which nobody else can reach.
inline constexpr char agent_socket_variable[] = "MUSTER_AGENT_SOCKET";

}  // namespace muster
