#include "launch/remote/host_agent.hpp"

#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "launch/wire/run_key.hpp"
#include "launch/wire/shim_directions.hpp"

namespace muster {

namespace {

constexpr int stdin_patience_ms = 20'000;
constexpr std::string_view job_prefix = "job:";

template <std::size_t Size>
std::string to_hex(std::array<unsigned char, Size> const& bytes) {
    std::string text(2 * Size + 1, '\0');
    ::sodium_bin2hex(text.data(), text.size(), bytes.data(), Size);
    text.pop_back();
    return text;
}

/// Returns whether `text` consists of exactly that many bytes in hexadecimal digits, and sets them.
template <std::size_t Size>
bool from_hex(std::string_view text, std::array<unsigned char, Size>& bytes) {
    std::size_t length = 0;
    return text.size() == 2 * Size &&
           ::sodium_hex2bin(bytes.data(), Size, text.data(), text.size(), nullptr, &length, nullptr) == 0 && length == Size;
}

std::string cookie_of(environment const& variables) {
    auto const cookie = variables.get_or("PBS_JOBCOOKIE", "");
    if (cookie.size() < crypto_generichash_KEYBYTES_MIN || cookie.size() > crypto_generichash_KEYBYTES_MAX)
        throw error(errc::unavailable,
                    "PBS_JOBCOOKIE, the secret of this PBS job, is not set or not of its length; start muster run in the job's "
                    "script, or with --pass-key file");
    return cookie;
}

/// Returns the key that seals tickets: a hash of the cookie, as long as libsodium's secretbox needs it.
std::array<unsigned char, crypto_secretbox_KEYBYTES> sealing_key(environment const& variables) {
    auto const cookie = cookie_of(variables);
    std::array<unsigned char, crypto_secretbox_KEYBYTES> key{};
    ::crypto_generichash(key.data(), key.size(), reinterpret_cast<unsigned char const*>(cookie.data()), cookie.size(), nullptr,
                         0);
    return key;
}

/// The random nonce, followed by the sealed key.
struct sealed_key {
    std::array<unsigned char, crypto_secretbox_NONCEBYTES> nonce{};
    std::array<unsigned char, crypto_secretbox_MACBYTES + sizeof(run_key::bytes)> box{};
};

std::string first_line_of_stdin() {
    std::string line;
    pollfd one{STDIN_FILENO, POLLIN, 0};
    for (char c = 0; line.size() < 256 && ::poll(&one, 1, stdin_patience_ms) > 0;) {
        auto const n = ::read(STDIN_FILENO, &c, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || c == '\n') break;
        line += c;
    }
    return line;
}

}  // namespace

std::string seal_for_job(run_key const& key, environment const& variables) {
    auto const with = sealing_key(variables);
    sealed_key sealed;
    ::randombytes_buf(sealed.nonce.data(), sealed.nonce.size());
    ::crypto_secretbox_easy(sealed.box.data(), key.bytes.data(), key.bytes.size(), sealed.nonce.data(), with.data());
    return std::string(job_prefix) + to_hex(sealed.nonce) + to_hex(sealed.box);
}

run_key redeem_ticket(std::string const& ticket, environment const& variables) {
    if (ticket == "stdin") return parse_run_key(first_line_of_stdin());
    if (ticket.starts_with("file:") || ticket.starts_with(munge_mark)) return take_key(ticket);
    sealed_key sealed;
    std::string_view text = ticket;
    constexpr auto nonce_digits = 2 * sizeof(sealed.nonce);
    if (!text.starts_with(job_prefix) || !from_hex(text.substr(job_prefix.size(), nonce_digits), sealed.nonce) ||
        !from_hex(text.substr(job_prefix.size() + nonce_digits), sealed.box))
        throw error(errc::usage, "muster agent is what muster run starts on each host; start ranks with: muster run");
    run_key key;
    if (::crypto_secretbox_open_easy(key.bytes.data(), sealed.box.data(), sealed.box.size(), sealed.nonce.data(),
                                     sealing_key(variables).data()) != 0)
        throw error(errc::unavailable,
                    "this agent's ticket was sealed in another PBS job (PBS_JOBCOOKIE differs); start ranks with: muster run");
    return key;
}

}  // namespace muster
