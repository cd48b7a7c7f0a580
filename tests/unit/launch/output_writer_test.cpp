#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <random>

#include "base/unique_fd.hpp"
#include "launch/ranks/output_writer.hpp"
#include "launch/ranks/rank_stream.hpp"

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

TEST(lines, of_a_progress_bar_show_before_they_end) {
    line_splitter bar;
    bar.push("\r 10%");
    EXPECT_TRUE(bar.awaits_flush(false));
    EXPECT_EQ(bar.flush(false), "\r 10%");
    EXPECT_FALSE(bar.awaits_flush(false));
    bar.push("\r 20%\r 30% \xe2\x96");  // cut within a character
    EXPECT_EQ(bar.flush(false), "\r 20%\r 30% \xe2\x96");
    EXPECT_EQ(bar.push("\x88\n"), "\x88\n");
    line_splitter tagged(line_format{.tag = "[h:1] "});
    tagged.push("\r 10%");
    EXPECT_EQ(tagged.flush(false), "[h:1] \r 10%\n");
}

TEST(lines, that_may_be_a_bar_show_when_they_stay_unfinished) {
    for (auto const* text : {"10%\r", "epoch 1: 10%\repoch 1: 20%"}) {
        line_splitter lines;
        lines.push(text);
        EXPECT_EQ(lines.flush(false), "") << "it may be a line with CRLF that was read in two pieces";
        EXPECT_EQ(lines.flush(false), text);
    }
    line_splitter prompt;
    prompt.push("name? ");
    EXPECT_FALSE(prompt.awaits_flush(false));
    EXPECT_EQ(prompt.flush(true), "");
    prompt.push(".");
    EXPECT_EQ(prompt.flush(true), "name? .") << "a row of dots shows although it grows";
}

TEST(lines, of_no_text_stay_whole) {
    for (std::string const text : {"\r\x01 rest", "\r\xff rest", "a line of text"}) {
        line_splitter lines;
        lines.push(text);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(lines.flush(false), "");
        EXPECT_EQ(lines.push("\n"), text + "\n");
    }
}

TEST(lines, of_a_hidden_rank_go_nowhere) {
    line_splitter lines(line_format{.hidden = true});
    EXPECT_EQ(lines.destination(1), output_sink::unshown);
    EXPECT_EQ(lines.push("a\nb"), "a\n") << "what they say counts";
    EXPECT_EQ(lines.tail(2), "a\nb");
    lines.set_tag({});
    EXPECT_EQ(lines.destination(1), 1) << "it has become a rank that shows";
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
