#include "base/units.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace muster {
namespace {

TEST(bytes, reads_what_people_write) {
    EXPECT_EQ(parse_bytes("0"), 0u);
    EXPECT_EQ(parse_bytes("4096"), 4096u);
    EXPECT_EQ(parse_bytes("64MiB"), 64u << 20);
    EXPECT_EQ(parse_bytes("64M"), 64u << 20);
    EXPECT_EQ(parse_bytes("64m"), 64u << 20);
    EXPECT_EQ(parse_bytes("64k"), 64u << 10);
    EXPECT_EQ(parse_bytes("2g"), std::uint64_t{2} << 30);
    EXPECT_EQ(parse_bytes("1t"), std::uint64_t{1} << 40);
    EXPECT_EQ(parse_bytes(" 1.5 GiB "), 3u << 29);
    EXPECT_EQ(parse_bytes("10kB"), 10000u);
    EXPECT_EQ(parse_bytes("2TB"), 2000000000000u);
    EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993u) << "whole bytes beyond a double's 53 bits stay exact";
}

TEST(bytes, refuses_what_is_none) {
    for (char const* text : {"", "MiB", "-1", "1x", "1 MiBs", "nan", "inf", "1e30", "9300PB", "99999999T", "."})
        EXPECT_THROW(parse_bytes(text), parse_error) << text;
}

TEST(bytes, shows_the_fault) {
    try {
        parse_bytes("64Mib", "--bucket-size");
        FAIL();
    } catch (parse_error const& e) {
        EXPECT_EQ(e.column(), 3u);
        EXPECT_STREQ(e.what(),
                     "--bucket-size: unknown unit 'Mib'; use one of B, KiB, MiB, GiB, TiB, kB, MB, GB, TB\n  64Mib\n    ^");
    }
}

TEST(bytes, prints_short) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1536), "1.5 KiB");
    EXPECT_EQ(format_bytes(64u << 20), "64 MiB");
    EXPECT_EQ(format_bytes(~0ull), "16 EiB");
}

TEST(durations, reads_what_people_write) {
    EXPECT_DOUBLE_EQ(parse_duration("90").count(), 90);
    EXPECT_DOUBLE_EQ(parse_duration("90s").count(), 90);
    EXPECT_DOUBLE_EQ(parse_duration("1.5s").count(), 1.5);
    EXPECT_DOUBLE_EQ(parse_duration("250ms").count(), 0.25);
    EXPECT_DOUBLE_EQ(parse_duration("5min").count(), 300);
    EXPECT_DOUBLE_EQ(parse_duration("2h").count(), 7200);
    EXPECT_DOUBLE_EQ(parse_duration("1:30").count(), 90);
    EXPECT_DOUBLE_EQ(parse_duration("1:30:00").count(), 5400);
    EXPECT_DOUBLE_EQ(parse_duration("2-12:00:00").count(), 216000);
    EXPECT_DOUBLE_EQ(parse_duration("2-12").count(), 216000);
}

TEST(durations, refuses_what_is_none) {
    for (char const* text : {"", "s", "-5s", "1:75", "1:2:3:4", ":", "1:", "1-", "5 parsecs", "1e99", "1:-2", "--"})
        EXPECT_THROW(parse_duration(text), parse_error) << text;
}

TEST(durations, prints_short) {
    EXPECT_EQ(format_duration(duration(12e-6)), "12 us");
    EXPECT_EQ(format_duration(duration(0.0015)), "1.5 ms");
    EXPECT_EQ(format_duration(duration(999.6e-6)), "1 ms");
    EXPECT_EQ(format_duration(duration(0.99951)), "1 s");
    EXPECT_EQ(format_duration(duration(2.314)), "2.31 s");
    EXPECT_EQ(format_duration(duration(5400)), "01:30:00");
    EXPECT_EQ(format_walltime(duration(216000.2)), "60:00:01");
}

}  // namespace
}  // namespace muster
