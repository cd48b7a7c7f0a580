#include "base/codec/codec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "tests/every_member.hpp"
#include "tests/thrown_message.hpp"

namespace muster::codec {
namespace {

enum class animal : std::uint8_t { ant = 1, bee, cow = 40 };

struct leaf {
    std::int16_t small = 0;
    std::vector<std::int64_t> numbers;
    bool operator==(leaf const&) const = default;
};
struct tree {
    bool flag = false;
    animal kind = animal::ant;
    double real = 0;
    long whole = 0;
    std::string text;
    std::vector<leaf> leaves;
    std::vector<std::string> words;
    std::optional<int> number;
    std::optional<leaf> last;
    std::array<unsigned char, 4> bytes{};
    environment variables;
    duration time{};
    bool operator==(tree const&) const = default;
};

template <typename T>
T decoded(std::string_view bytes) {
    T made;
    reader from(bytes);
    from >> made;
    from.end();
    return made;
}

tree full_tree(bool flag) {
    return member_filler(flag).make<tree>();
}

TEST(codec, every_member_comes_back) {
    for (bool const flag : {false, true}) EXPECT_EQ(decoded<tree>(encode(full_tree(flag))), full_tree(flag));
    EXPECT_EQ(decoded<tree>(encode(tree{})), tree{});
}

TEST(codec, numbers_are_little_endian_and_lists_begin_with_their_length) {
    EXPECT_EQ(encode(std::uint32_t{0x04030201}, true, animal::cow), (std::string{1, 2, 3, 4, 1, 40}));
    EXPECT_EQ(encode(std::string("ab"), std::vector<std::int16_t>{-1}), (std::string{2, 0, 0, 0, 'a', 'b', 1, 0, 0, 0, -1, -1}));
    EXPECT_EQ(encode(std::variant<int, bool>(true), std::optional<bool>()), (std::string{1, 1, 0}));
}

TEST(codec, bytes_that_end_early_or_go_on_are_refused) {
    auto const whole = encode(full_tree(true));
    for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_THROW(decoded<tree>(whole.substr(0, size)), error) << size;
    EXPECT_THROW(decoded<tree>(whole + "x"), error);
}

TEST(codec, values_that_a_type_does_not_have_are_refused) {
    EXPECT_EQ(decoded<animal>("\x02"), animal::bee);
    EXPECT_EQ(decoded<animal>("("), animal::cow);
    for (auto const* const other : {"\x03", "\x27", ")", "\x7f", "\xff"}) EXPECT_THROW(decoded<animal>(other), error) << other;
    EXPECT_THROW(decoded<animal>(std::string(1, '\0')), error);
    EXPECT_THROW(decoded<bool>("\x02"), error);
    EXPECT_THROW((decoded<std::variant<int, bool>>(std::string{2, 0})), error);
}

TEST(codec, a_length_that_cannot_be_takes_no_memory) {
    auto const many = encode(std::numeric_limits<std::uint32_t>::max()) + std::string(100, 'x');
    EXPECT_THROW(decoded<std::string>(many), error);
    EXPECT_THROW(decoded<std::vector<leaf>>(many), error);
    EXPECT_THROW(decoded<environment>(many), error);
    auto const of_six_bytes_each = [](std::uint32_t count) {
        return message_of(errc::invalid_data, [&] { decoded<std::vector<leaf>>(encode(count) + std::string(100, '\0')); });
    };
    EXPECT_THAT(of_six_bytes_each(16), testing::HasSubstr("4 bytes follow its end"));
    EXPECT_THAT(of_six_bytes_each(17), testing::HasSubstr("17 items do not fit into the 100 bytes left"));
}

}  // namespace
}  // namespace muster::codec
