#include "launch/wire/run_key.hpp"

#include <sodium.h>

#include "base/error.hpp"

namespace muster {

run_key make_run_key() {
    if (::sodium_init() < 0) throw error(errc::system, "libsodium cannot get random numbers from the kernel");
    run_key key;
    ::randombytes_buf(key.bytes.data(), key.bytes.size());
    return key;
}

std::string to_text(run_key const& key) {
    std::string text(2 * key.bytes.size() + 1, '\0');
    ::sodium_bin2hex(text.data(), text.size(), key.bytes.data(), key.bytes.size());
    text.pop_back();
    return text;
}

run_key parse_run_key(std::string_view text) {
    run_key key;
    std::size_t length = 0;
    if (text.size() != 2 * key.bytes.size() ||
        ::sodium_hex2bin(key.bytes.data(), key.bytes.size(), text.data(), text.size(), nullptr, &length, nullptr) != 0 ||
        length != key.bytes.size())
        throw error(errc::parse, "MUSTER_TOKEN holds no key of muster run; start ranks with muster run, not with muster shim");
    return key;
}

}  // namespace muster
