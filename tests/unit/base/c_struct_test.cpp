#include "base/c_api/c_struct.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/error.hpp"

namespace muster {
namespace {

struct first_version {
    std::size_t struct_size;
    std::int64_t number;
};
struct second_version {
    std::size_t struct_size;
    std::int64_t number;
    std::int64_t added;
};

errc code_of(second_version const& given, std::size_t size) {
    second_version sized = given;
    sized.struct_size = size;
    try {
        static_cast<void>(whole_c_struct(reinterpret_cast<first_version const*>(&sized), "the options", 1));
    } catch (error const& e) {
        return e.code();
    }
    return errc::internal;  // none
}

TEST(c_struct, an_older_callers_is_shorter_and_the_rest_is_zero) {
    second_version given{sizeof(first_version), 7, 9};
    auto const read = whole_c_struct(&given, "the options", 2);
    EXPECT_EQ(read.number, 7);
    EXPECT_EQ(read.added, 0);
    EXPECT_EQ(whole_c_struct<second_version>(nullptr, "the options", 2).number, 0);
}

TEST(c_struct, a_newer_callers_must_not_have_set_what_is_unknown) {
    EXPECT_EQ(code_of({0, 7, 0}, sizeof(second_version)), errc::internal);
    EXPECT_EQ(code_of({0, 7, 1}, sizeof(second_version)), errc::unavailable);
    EXPECT_EQ(code_of({0, 7, 1}, sizeof(first_version)), errc::internal);
}

TEST(c_struct, sizes_that_no_struct_has_are_refused) {
    for (std::size_t const size : {std::size_t{0}, sizeof(std::size_t) - 1, (std::size_t{1} << 16) + 1}) {
        EXPECT_EQ(code_of({0, 7, 0}, size), errc::usage) << size;
        second_version into{size, 0, 0};
        EXPECT_THROW(give_c_struct(second_version{0, 7, 9}, into, "the facts"), error) << size;
    }
}

TEST(c_struct, a_result_fills_what_the_caller_has_room_for) {
    second_version into{sizeof(first_version), 1, 2};
    give_c_struct(second_version{0, 7, 9}, into, "the facts");
    EXPECT_EQ(into.struct_size, sizeof(first_version));
    EXPECT_EQ(into.number, 7);
    EXPECT_EQ(into.added, 2);
}

}  // namespace
}  // namespace muster
