#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <random>

#include "base/unique_fd.hpp"
#include "launch/ranks/line_splitter.hpp"
#include "launch/ranks/output_writer.hpp"

namespace muster {
namespace {

TEST(lines, come_whole) {
    line_splitter lines;
    EXPECT_EQ(lines.push("ab"), "");
    EXPECT_EQ(lines.push("c\nde\nf"), "abc\nde\n");
    EXPECT_TRUE(lines.has_partial());
    EXPECT_EQ(lines.finish(), "f");
    EXPECT_EQ(lines.finish(), "");
}

TEST(lines, are_tagged_each) {
    line_splitter lines(line_format{.tag = "[h:1] "});
    EXPECT_EQ(lines.push("a"), "");
    EXPECT_EQ(lines.push("b\n\nc\nd"), "[h:1] ab\n[h:1] \n[h:1] c\n");
    EXPECT_EQ(lines.finish(), "[h:1] d\n");
}

TEST(lines, of_one_rank_pass_at_once) {
    line_splitter lines(line_format{.raw = true});
    EXPECT_EQ(lines.push("pro"), "pro");
    EXPECT_EQ(lines.push("mpt> "), "mpt> ");
}

TEST(lines, carry_the_time) {
    line_splitter lines(line_format{.timestamp = true});
    auto const line = lines.push("x\n");
    ASSERT_EQ(line.size(), 26u) << line;
    EXPECT_EQ(line[10], 'T');
    EXPECT_EQ(line[19], '.');
    EXPECT_EQ(line.substr(23), " x\n");
}

TEST(lines, keep_every_byte_however_they_are_cut) {
    std::mt19937 random(7);
    std::string all;
    for (int i = 0; i < 200000; ++i) all += static_cast<char>(random());
    line_splitter lines;
    std::string got;
    for (std::size_t at = 0; at < all.size();) {
        std::size_t const n = std::min<std::size_t>(random() % 3000, all.size() - at);
        auto const piece = lines.push(std::string_view(all).substr(at, n));
        EXPECT_TRUE(piece.empty() || piece.back() == '\n');
        got += piece;
        at += n;
    }
    EXPECT_EQ(got + lines.finish(), all);
}

TEST(lines, without_end_do_not_fill_memory) {
    line_splitter lines;
    std::string const block(1 << 20, 'x');
    std::size_t passed = 0;
    for (int i = 0; i < 20; ++i) passed += lines.push(block).size();
    EXPECT_GE(passed, line_splitter::longest_line_bytes);
    EXPECT_EQ(passed + lines.finish().size(), 20u << 20);
}

TEST(lines, tail) {
    line_splitter lines;
    EXPECT_EQ(lines.tail(2), "");
    EXPECT_EQ(lines.tail(0), "");
    lines.push("a\nb\nc\n");
    EXPECT_EQ(lines.tail(2), "b\nc\n");
    EXPECT_EQ(lines.tail(9), "a\nb\nc\n");
    lines.push("d");
    EXPECT_EQ(lines.tail(2), "c\nd");
    lines.push(std::string(10000, 'y') + "\nend");
    EXPECT_EQ(lines.tail(1), "end");
}

TEST(writer, drops_what_nobody_reads_and_says_so) {
    // Descriptor 1 is a pipe whose reader is gone; SIGPIPE is ignored as in the launcher.
    ::signal(SIGPIPE, SIG_IGN);
    int const saved = ::dup(STDOUT_FILENO);
    {
        auto [read_end, write_end] = make_pipe();
        ::dup2(write_end.get(), STDOUT_FILENO);
    }
    output_writer writer;
    writer.write(STDOUT_FILENO, "lost\n");
    EXPECT_TRUE(writer.drain(10));
    EXPECT_TRUE(writer.broken(STDOUT_FILENO));
    EXPECT_FALSE(writer.broken(STDERR_FILENO));
    ::dup2(saved, STDOUT_FILENO);
    ::close(saved);
}

TEST(writer, does_not_block_its_caller) {
    int const saved = ::dup(STDOUT_FILENO);
    auto [read_end, write_end] = make_pipe();
    ::dup2(write_end.get(), STDOUT_FILENO);
    write_end.reset();
    {
        output_writer writer;
        std::size_t const total = output_writer::high_water_bytes + (1u << 20);
        for (std::size_t i = 0; i < total; i += 1u << 20) writer.write(STDOUT_FILENO, std::string(1u << 20, 'z'));
        EXPECT_TRUE(writer.congested());
        EXPECT_FALSE(writer.drain(0.01));
        std::string buffer(1 << 16, '\0');
        std::size_t got = 0;
        while (got < total) {
            auto const n = ::read(read_end.get(), buffer.data(), buffer.size());
            ASSERT_GT(n, 0);
            got += static_cast<std::size_t>(n);
        }
        EXPECT_TRUE(writer.drain(10));
        EXPECT_FALSE(writer.congested());
    }
    ::dup2(saved, STDOUT_FILENO);
    ::close(saved);
}

}  // namespace
}  // namespace muster
