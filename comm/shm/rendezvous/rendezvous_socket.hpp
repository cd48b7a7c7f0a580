// The sockets of a rendezvous. They have abstract names, carry messages of fixed size and know the process at the other end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "comm/backend/processes/process_watch.hpp"
#include "comm/backend/world_record.hpp"

namespace muster::shm {

inline constexpr std::uint64_t greeting = 0x6d757374'65720003u;  // with the version of these messages

/// The first message of a rank, with its record; rank 0 then sends every rank's to all.
struct introduction {
    std::uint64_t magic = greeting;
    world_record record;
};

/// A vote, rank 0's answer to the votes, or, with `failed`, why the rendezvous failed and which ranks are at fault. Rank 0's
/// first message to each rank carries the memory file.
struct rendezvous_message {
    static constexpr std::size_t most_culprits = 64;
    std::uint64_t magic = greeting;
    std::int32_t yes = 0;
    std::int32_t failed = 0;
    errc code = errc::internal;
    std::int32_t culprits = 0;  ///< how many of them there are in `culprit`
    std::array<std::int32_t, most_culprits> culprit{};
    std::array<char, 1500> why{};
};

/// What does not fit is cut.
rendezvous_message refusal(errc code, std::string_view why, std::span<int const> culprits) noexcept;

/// Throws comm_error with what a refusal says; nothing for other messages.
void throw_if_failed(rendezvous_message const& message);

/// A sequenced-packet socket. Throws errc::system.
unique_fd make_socket();

/// Binds it to the abstract name `key`, or `key` and the rank where one is given. 0, or errno.
int bind_to(int socket, std::string const& key, std::optional<int> rank = std::nullopt) noexcept;

/// Names at which rank 0 may listen, from 0 on. Abstract names have no permissions: another user may hold the first, and the ranks
/// try them all then.
inline constexpr int names_to_try = 8;
std::string name_to_try(std::string const& key, int which);

/// Connects it to who listens at `key`. 0, or errno: EAGAIN if that takes nobody for a while.
int connect_to(int socket, std::string const& key) noexcept;

struct accepted {
    unique_fd socket;
    std::optional<int> rank;  ///< by the name that it is bound to; nothing if it is bound to none
};
/// The next of those that connected to `key`; no socket if nobody has.
accepted accept_from(int listener, std::string const& key);

/// The process at the other end, as the kernel tells; nothing if it is another user's.
std::optional<process_name> other_end(int socket);

/// How long sending may take from now on: a rank that is stopped reads nothing, and what waits for it has little room.
void limit_sending(int socket, double seconds) noexcept;

/// With a file descriptor, unless `file` is -1. False if the other end is gone, or does not take it before the time that
/// limit_sending set has passed.
bool send_bytes(int socket, void const* data, std::size_t size, int file) noexcept;

/// How many bytes came; -1 if none, the other end being gone.
std::ptrdiff_t receive_bytes(int socket, void* data, std::size_t size, unique_fd* file) noexcept;

template <typename Message>
bool send_message(int socket, Message const& message, int file = -1) noexcept {
    return send_bytes(socket, &message, sizeof message, file);
}

/// False if the other end is gone or sent something else.
template <typename Message>
bool receive_message(int socket, Message& message, unique_fd* file = nullptr) noexcept {
    return receive_bytes(socket, &message, sizeof message, file) == static_cast<std::ptrdiff_t>(sizeof message) &&
           message.magic == greeting;
}

}  // namespace muster::shm
