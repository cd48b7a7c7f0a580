// Protects one connection between the launcher and a shim: proves who is at the other end, and lets nobody read or change frames.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/trust/key_proof.hpp"
#include "launch/wire/run_key.hpp"

namespace muster {

enum class wire_end { launcher, shim };

/// Returns a shim's first frame, not encrypted: the protocol's name and the shim's nonce.
std::string make_greeting(nonce const& of_shim);
std::optional<nonce> read_greeting(std::string_view frame);
constexpr std::size_t greeting_bytes = 40;

/// Returns the launcher's answer, not encrypted: its nonce.
std::string make_answer(nonce const& of_launcher);
std::optional<nonce> read_answer(std::string_view frame);

/// Encrypts what one end sends and opens what the other one sent. Each direction has its own key, made of the run's key and both
/// nonces (base/trust/key_proof.hpp), and is one stream of XChaCha20-Poly1305 frames (libsodium's secretstream): a frame opens only if
/// the other end of this connection made it with the run's key, and only unchanged and in its place. So the first frame that
/// opens proves who sent it; frames of another connection or of the other direction, or changed ones, do not open. The launcher
/// seals its empty first frame right after its answer; a shim does nothing before it has opened that one. There is no forward
/// secrecy: whoever has the run's key can read recordings of that run.
class secure_session {
  public:
    /// Throws errc::system.
    secure_session(run_key const& key, wire_end self, nonce const& of_shim, nonce const& of_launcher);
    ~secure_session();
    secure_session(secure_session const&) = delete;
    secure_session& operator=(secure_session const&) = delete;

    /// Seals a frame, or a piece of one of which `more` follows; the seal also protects `more`.
    std::string seal(std::string_view frame, bool more = false);
    /// Returns nothing if the other end did not make it; nothing opens after that. Without `more` only whole frames open.
    std::optional<std::string> open(std::string_view sealed, bool* more = nullptr);

  private:
    struct streams;
    std::unique_ptr<streams> streams_;
};

/// The most bytes that `seal` adds to a frame.
constexpr std::size_t sealing_bytes = 24 + 17;

}  // namespace muster
