#include "launch/wire/secure_session.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

/// Both ends of a connection, as the handshake makes them.
struct connection {
    explicit connection(run_key const& key = make_run_key())
        : of_shim(make_nonce()),
          of_launcher(make_nonce()),
          launcher(key, wire_end::launcher, of_shim, of_launcher),
          shim(key, wire_end::shim, of_shim, of_launcher) {}
    nonce of_shim;
    nonce of_launcher;
    secure_session launcher;
    secure_session shim;
};

TEST(secure_sessions, carry_frames_both_ways) {
    connection one;
    EXPECT_EQ(one.shim.open(one.launcher.seal("")), "");
    EXPECT_EQ(one.shim.open(one.launcher.seal("job")), "job");
    EXPECT_EQ(one.launcher.open(one.shim.seal("ready")), "ready");
    std::string const large(100'000, 'x');
    auto const sealed = one.launcher.seal(large);
    EXPECT_LE(sealed.size(), large.size() + sealing_bytes);
    EXPECT_EQ(sealed.find("xxxxxxxx"), std::string::npos);
    EXPECT_EQ(one.shim.open(sealed), large);
}

TEST(secure_sessions, do_not_open_what_was_changed) {
    auto const key = make_run_key();
    auto const length = connection(key).launcher.seal("job").size();
    for (std::size_t at = 0; at < length; ++at) {
        connection one(key);
        auto sealed = one.launcher.seal("job");
        sealed[at] = static_cast<char>(sealed[at] ^ 1);
        EXPECT_FALSE(one.shim.open(sealed)) << at;
    }
    for (std::size_t size = 0; size < length; ++size) {
        connection one(key);
        EXPECT_FALSE(one.shim.open(one.launcher.seal("job").substr(0, size))) << size;
    }
}

TEST(secure_sessions, do_not_open_what_is_not_in_its_place) {
    connection repeated;
    auto const first = repeated.launcher.seal("go");
    EXPECT_EQ(repeated.shim.open(first), "go");
    EXPECT_FALSE(repeated.shim.open(first));
    EXPECT_FALSE(repeated.shim.open(repeated.launcher.seal("after that")));

    connection skipped;
    EXPECT_EQ(skipped.shim.open(skipped.launcher.seal("one")), "one");
    auto const lost = skipped.launcher.seal("two");
    EXPECT_FALSE(skipped.shim.open(skipped.launcher.seal("three")));
}

TEST(secure_sessions, do_not_open_what_somebody_else_sealed) {
    auto const key = make_run_key();
    connection one(key);
    connection other(key);
    EXPECT_FALSE(one.shim.open(other.launcher.seal("of another connection")));
    connection third(key);
    EXPECT_FALSE(third.shim.open(third.shim.seal("its own, sent back")));
    connection fourth(key);
    secure_session stranger(make_run_key(), wire_end::launcher, fourth.of_shim, fourth.of_launcher);
    EXPECT_FALSE(fourth.shim.open(stranger.seal("of one without the key")));
    connection fifth(key);  // a launcher's nonce sent back to a shim, as if it were another shim's
    secure_session mirrored(key, wire_end::shim, fifth.of_launcher, fifth.of_shim);
    EXPECT_FALSE(fifth.launcher.open(mirrored.seal("with the nonces the other way round")));
}

TEST(secure_sessions, greetings_read_back) {
    auto const nonce = make_nonce();
    EXPECT_NE(nonce, make_nonce());
    auto const greeting = make_greeting(nonce);
    EXPECT_EQ(greeting.size(), greeting_bytes);
    EXPECT_EQ(read_greeting(greeting), nonce);
    EXPECT_EQ(read_answer(make_answer(nonce)), nonce);
    for (auto const& wrong : {std::string(), std::string("muster 1"), greeting + "x", "x" + greeting.substr(1)})
        EXPECT_FALSE(read_greeting(wrong)) << wrong;
    EXPECT_FALSE(read_answer("short"));
}

TEST(run_keys, read_back) {
    auto const one = make_run_key();
    EXPECT_EQ(parse_run_key(to_text(one)), one);
    EXPECT_NE(make_run_key(), one);
    for (auto const& wrong :
         {std::string(), std::string("abc"), to_text(one).substr(1), to_text(one) + "0", std::string(64, 'x')})
        EXPECT_THROW(parse_run_key(wrong), error) << wrong;
}

}  // namespace
}  // namespace muster
