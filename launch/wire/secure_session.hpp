// The protection of one connection between the launcher and a shim: who is at the other end, and that nobody reads or changes frames.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "launch/wire/run_key.hpp"

namespace muster {

enum class wire_end { launcher, shim };

/// A number that is used once: each end of a connection makes one.
using session_nonce = std::array<unsigned char, 32>;
session_nonce make_session_nonce();

/// The first frame of a shim, in clear: says what protocol this is, and the shim's nonce.
std::string make_greeting(session_nonce const& of_shim);
std::optional<session_nonce> read_greeting(std::string_view frame);
constexpr std::size_t greeting_bytes = 40;

/// The launcher's answer, in clear: its nonce.
std::string make_answer(session_nonce const& of_launcher);
std::optional<session_nonce> read_answer(std::string_view frame);

/// Encrypts what one end sends and opens what the other one sent. Each direction has its own key, derived from the run's
/// key and both nonces (keyed BLAKE2b), and is one stream of XChaCha20-Poly1305 frames (libsodium's secretstream): a frame
/// opens only if the other end of this very connection made it with the run's key, unchanged and in its place. So the first frame
/// that opens proves who sent it; frames of another connection, of the other direction or passed through a stranger's hands
/// with changes do not open. The launcher seals its empty first frame right behind its answer; a shim does nothing before that one
/// has opened. There is no forward secrecy: who has the run's key can read what he recorded of that run.
class secure_session {
  public:
    /// Throws errc::system.
    secure_session(run_key const& key, wire_end self, session_nonce const& of_shim, session_nonce const& of_launcher);
    ~secure_session();
    secure_session(secure_session const&) = delete;
    secure_session& operator=(secure_session const&) = delete;

    /// A frame, or a piece of one of which `more` follows: whether it does is sealed with it.
    std::string seal(std::string_view frame, bool more = false);
    /// Nothing if the other end did not make it; nothing opens after that. Without `more` only whole frames open.
    std::optional<std::string> open(std::string_view sealed, bool* more = nullptr);

  private:
    struct streams;
    std::unique_ptr<streams> streams_;
};

/// What `seal` adds to a frame at most.
constexpr std::size_t sealing_bytes = 24 + 17;

}  // namespace muster
