// The sockets of a rendezvous have abstract names, carry messages of fixed size and know the process at the other end.
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

inline constexpr std::uint64_t greeting = 0x6d757374'65720003u;  // includes the version of these messages

/// The first message of a rank, with its record; rank 0 then sends every rank's to all.
struct introduction {
    std::uint64_t magic = greeting;
    world_record record;
};

/// A vote, rank 0's answer to the votes, or, with `failed`, the reason why the rendezvous failed and the ranks at fault. Rank 0's
/// first message to each rank carries the memory file.
struct rendezvous_message {
    static constexpr std::size_t most_culprits = 64;
    std::uint64_t magic = greeting;
    std::int32_t yes = 0;
    std::int32_t failed = 0;
    errc code = errc::internal;
    std::int32_t culprits = 0;  ///< the number of ranks in `culprit`
    std::array<std::int32_t, most_culprits> culprit{};
    std::array<char, 1500> why{};
};

/// Cuts what does not fit.
rendezvous_message refusal(errc code, std::string_view why, std::span<int const> culprits) noexcept;

/// Throws a comm_error made of a refusal; does nothing for other messages.
void throw_if_failed(rendezvous_message const& message);

/// Makes a sequenced-packet socket. Throws errc::system.
unique_fd make_socket();

/// Binds it to the abstract name `key`, or to `key` and the rank if one is given. Returns 0 or errno.
int bind_to(int socket, std::string const& key, std::optional<int> rank = std::nullopt) noexcept;

/// Returns the names at which rank 0 may listen, from 0 on. Abstract names have no permissions: another user may hold the first
/// one; the ranks then try them all.
inline constexpr int names_to_try = 8;
std::string name_to_try(std::string const& key, int which);

/// Connects it to the process that listens at `key`. Returns 0 or errno: EAGAIN if that process accepts nobody for a while.
int connect_to(int socket, std::string const& key) noexcept;

struct accepted {
    unique_fd socket;
    std::optional<int> rank;  ///< from the name that it is bound to; nothing if it is not bound
};
/// Returns the next process that connected to `key`; no socket if nobody has.
accepted accept_from(int listener, std::string const& key);

/// Returns the process at the other end, as the kernel knows it; nothing if it is another user's.
std::optional<process_name> other_end(int socket);

/// Limits the time of each send from now on: a stopped rank reads nothing, and there is little room for what waits for it.
void limit_sending(int socket, double seconds) noexcept;

/// Sends them, with a file descriptor unless `file` is -1. Returns false if the other end is gone, or does not take them within
/// the limit that limit_sending() set.
bool send_bytes(int socket, void const* data, std::size_t size, int file) noexcept;

/// Returns the number of bytes received; -1 if none, since the other end is gone.
std::ptrdiff_t receive_bytes(int socket, void* data, std::size_t size, unique_fd* file) noexcept;

template <typename Message>
bool send_message(int socket, Message const& message, int file = -1) noexcept {
    return send_bytes(socket, &message, sizeof message, file);
}

/// Returns false if the other end is gone or sent something else.
template <typename Message>
bool receive_message(int socket, Message& message, unique_fd* file = nullptr) noexcept {
    return receive_bytes(socket, &message, sizeof message, file) == static_cast<std::ptrdiff_t>(sizeof message) &&
           message.magic == greeting;
}

}  // namespace muster::shm
