#include "launch/remote/agent_ticket.hpp"

#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/wire/key_file.hpp"

namespace muster {

namespace {

constexpr int stdin_patience_ms = 20'000;

/// The pad that covers a key: the cookie's keyed hash of a number that is used once.
run_key pad_of(std::string const& cookie, run_key const& nonce) {
    run_key pad;
    ::crypto_generichash(pad.bytes.data(), pad.bytes.size(), nonce.bytes.data(), nonce.bytes.size(),
                         reinterpret_cast<unsigned char const*>(cookie.data()), cookie.size());
    return pad;
}

run_key combine(run_key const& a, run_key const& b) {
    run_key both;
    for (std::size_t i = 0; i < both.bytes.size(); ++i)
        both.bytes[i] = static_cast<unsigned char>(a.bytes[i] ^ b.bytes[i]);
    return both;
}

std::string cookie_of(environment const& variables) {
    auto const cookie = variables.get_or("PBS_JOBCOOKIE", "");
    if (cookie.size() < crypto_generichash_KEYBYTES_MIN || cookie.size() > crypto_generichash_KEYBYTES_MAX)
        throw error(errc::unavailable,
                    "PBS_JOBCOOKIE, the secret of this PBS job, is not set or not of its length; start muster run in the job's "
                    "script, or with --pass-key file");
    return cookie;
}

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
    auto const nonce = make_run_key();
    return "job:" + to_text(nonce) + ":" + to_text(combine(key, pad_of(cookie_of(variables), nonce)));
}

run_key redeem_ticket(std::string const& ticket, environment const& variables) {
    if (ticket == "stdin") return parse_run_key(first_line_of_stdin());
    if (ticket.starts_with("file:")) return read_key_file(ticket.substr(5));
    auto const parts = split(ticket, ':');
    if (parts.size() != 3 || parts[0] != "job")
        throw error(errc::usage, "muster agent is what muster run starts on each host; start ranks with: muster run");
    return combine(parse_run_key(parts[2]), pad_of(cookie_of(variables), parse_run_key(parts[1])));
}

}  // namespace muster
