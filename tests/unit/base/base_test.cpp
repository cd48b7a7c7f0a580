#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/shared_library.hpp"
#include "base/unique_fd.hpp"

namespace muster {
namespace {

TEST(errors, map_to_exit_codes) {
    EXPECT_EQ(exit_code(errc::usage), 2);
    EXPECT_EQ(exit_code(errc::config), 2);
    EXPECT_EQ(exit_code(errc::timeout), 124);
    EXPECT_EQ(exit_code(errc::placement), 125);
    EXPECT_EQ(exit_code(errc::internal), 125);
}

TEST(errors, system_errors_name_call_object_and_reason) {
    try {
        throw_system("open", "/no/such", ENOENT, "check the path");
    } catch (error const& e) {
        EXPECT_EQ(e.code(), errc::not_found);
        EXPECT_STREQ(e.what(), "open /no/such: No such file or directory (errno 2); check the path");
    }
}

TEST(errors, broken_assumptions_name_their_place) {
    EXPECT_NO_THROW(expect(true, "x"));
    try {
        expect(false, "a server");
        FAIL();
    } catch (error const& e) {
        EXPECT_NE(std::string(e.what()).find("base_test.cpp"), std::string::npos);
    }
}

TEST(environments, are_values) {
    environment env{{"PMIX_RANK", "3"}, {"PMI_SIZE", "x1"}, {"PATH", "/bin"}};
    EXPECT_EQ(env.get("PATH"), "/bin");
    EXPECT_EQ(env.get_int("PMIX_RANK"), 3);
    EXPECT_EQ(env.get_int("NONE"), std::nullopt);
    EXPECT_THROW(env.get_int("PMI_SIZE"), parse_error);
    EXPECT_FALSE(env.set_default("PATH", "/x"));
    env.unset_prefix("PMI");
    EXPECT_EQ(env.lines(), std::vector<std::string>{"PATH=/bin"});
}

TEST(environments, capture_sees_this_process) {
    EXPECT_TRUE(environment::capture().has("PATH"));
}

struct counted {
    using type = int;
    static inline int closed = 0;
    static type null() noexcept { return 0; }
    static void close(type) noexcept { ++closed; }
};

TEST(handles, close_once) {
    counted::closed = 0;
    {
        unique_handle<counted> a(1);
        unique_handle<counted> b(std::move(a));
        EXPECT_FALSE(a);
        b.reset(2);
        EXPECT_EQ(counted::closed, 1);
        a = std::move(b);
    }
    EXPECT_EQ(counted::closed, 2);
    unique_handle<counted> c(3);
    EXPECT_EQ(c.release(), 3);
    EXPECT_EQ(counted::closed, 2);
}

TEST(handles, pipes_close_on_exec) {
    auto const [read_end, write_end] = make_pipe();
    EXPECT_TRUE(::fcntl(read_end.get(), F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(::fcntl(write_end.get(), F_GETFD) & FD_CLOEXEC);
}

TEST(shared_libraries, say_what_is_missing) {
    std::vector<std::string> const names{"libno-such-1.so", "libno-such-2.so"};
    shared_library const none(names);
    EXPECT_FALSE(none);
    EXPECT_NE(none.missing().find("libno-such-1.so"), std::string::npos);
    EXPECT_NE(none.missing().find("libno-such-2.so"), std::string::npos);
    EXPECT_EQ(none.symbol<int()>("x"), nullptr);
    std::vector<std::string> const libc{"libno-such.so", "libc.so.6"};
    shared_library const some(libc);
    ASSERT_TRUE(some);
    EXPECT_EQ(some.name(), "libc.so.6");
    EXPECT_NE(some.symbol<int()>("getpid"), nullptr);
}

TEST(logs, refuse_an_unknown_level) {
    EXPECT_THROW(init_log("loud"), error);
}

}  // namespace
}  // namespace muster
