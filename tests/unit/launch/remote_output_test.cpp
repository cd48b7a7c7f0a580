#include "launch/run/remote/remote_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/files.hpp"
#include "base/unique_fd.hpp"
#include "launch/ranks/rank_stream.hpp"

namespace muster {
namespace {

using kind = wire::output_piece::kind;

/// A standard descriptor becomes a file, or what is given, until it is gone.
class redirected {
  public:
    redirected(int number, int to) : number_(number), before_(::dup(number)) { ::dup2(to, number); }
    ~redirected() { ::dup2(before_.get(), number_); }

  private:
    int number_;
    unique_fd before_;
};

/// Both streams of a launcher, in files. Between its beginning and `end` nothing may be expected: it would be told into these files.
struct launcher_output {
    std::string const name = testing::TempDir() + "remote_output." + std::to_string(::getpid());
    unique_fd out_file{::open((name + ".out").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    unique_fd err_file{::open((name + ".err").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    std::optional<redirected> out{std::in_place, STDOUT_FILENO, out_file.get()};
    std::optional<redirected> err{std::in_place, STDERR_FILENO, err_file.get()};
    event_loop loop;
    output_writer writer;
    std::map<int, std::size_t> room;
    remote_output output;
    explicit launcher_output(std::size_t ranks)
        : output(loop, writer, ranks, remote_output::window(ranks),
                 [this](int rank, std::size_t bytes) { room[rank] += bytes; }) {}
    ~launcher_output() {
        for (auto const* end : {".out", ".err"}) ::unlink((name + end).c_str());
    }
    struct texts {
        std::string out, err;
    };
    texts end() {
        writer.drain(5);
        out.reset();
        err.reset();
        return {read_text_file(name + ".out"), read_text_file(name + ".err")};
    }
};

TEST(remote_output, joins_the_lines_of_each_rank_and_stream) {
    launcher_output here(3);
    here.output.take(0, {kind::out, "zero "});
    here.output.take(1, {kind::out, "one "});
    here.output.take(0, {kind::err, "an err"});
    here.output.take(0, {kind::out, "is whole\nand"});
    here.output.take(1, {kind::out, "is\nunfinished"});
    here.output.take(0, {kind::note, "muster: of the shim\n"});
    here.output.take(0, {kind::err, "or\n"});
    auto const got = here.end();
    EXPECT_EQ(got.out, "zero is whole\none is\n");
    EXPECT_EQ(got.err, "muster: of the shim\nan error\n");
}

TEST(remote_output, writes_what_a_rank_has_left_unfinished_at_its_end) {
    launcher_output here(3);
    here.output.take(1, {kind::out, "a line\nunfinished"});
    here.output.finish(1);
    here.output.finish(1);
    here.output.finish(2);
    EXPECT_EQ(here.end().out, "a line\nunfinished");
}

TEST(remote_output, shows_a_bar_before_its_line_ends) {
    launcher_output here(2);
    here.output.take(0, {kind::err, "\r 10%"});
    here.output.take(1, {kind::err, "unfinished"});
    here.loop.after(partial_patience * 1.5, [&] { here.loop.stop(); });
    here.loop.run();
    here.output.take(0, {kind::note, "muster: a note\n"});
    EXPECT_EQ(here.end().err, "\r 10%\nmuster: a note\n");
}

TEST(remote_output, tags_lines) {
    launcher_output here(2);
    here.output.set_format(1, {.tag = "[b:1] "});
    here.output.take(1, {kind::out, "a\nb"});
    here.output.take(1, {kind::err, "c\n"});
    here.output.finish(1);
    auto const got = here.end();
    EXPECT_EQ(got.out, "[b:1] a\n[b:1] b\n");
    EXPECT_EQ(got.err, "[b:1] c\n");
}

TEST(remote_output, lines_of_many_ranks_are_whole_however_they_are_cut) {
    constexpr int ranks = 5;
    launcher_output here(ranks);
    std::mt19937 random(11);
    std::vector<std::string> sent(ranks);
    std::vector<std::string> rest(ranks);
    for (int r = 0; r < ranks; ++r)
        for (int line = 0; line < 60; ++line) {
            auto& text = sent[static_cast<std::size_t>(r)];
            text += std::to_string(r);
            for (auto n = random() % 20'000; n > 0; --n)  // any byte but that which ends a line
                text += static_cast<char>(random() % 255 < 10 ? 9 : 11 + random() % 245);
            text += '\n';
        }
    rest = sent;
    for (bool any = true; any;) {
        any = false;
        for (int r = 0; r < ranks; ++r) {
            auto& text = rest[static_cast<std::size_t>(r)];
            auto const size = std::min<std::size_t>(text.size(), 1 + random() % 3000);
            here.output.take(r, {kind::out, std::string_view(text).substr(0, size)});
            text.erase(0, size);
            any = any || !text.empty();
        }
    }
    auto const all = here.end().out;
    std::vector<std::string> got(ranks);
    for (std::size_t at = 0; at < all.size();) {
        auto const end = all.find('\n', at);
        ASSERT_NE(end, std::string::npos);
        auto const rank = static_cast<std::size_t>(all[at] - '0');
        ASSERT_LT(rank, got.size());
        got[rank] += all.substr(at, end + 1 - at);
        at = end + 1;
    }
    EXPECT_TRUE(got == sent);
}

TEST(remote_output, makes_room_for_what_it_has_taken) {
    launcher_output here(2);
    std::size_t const window = remote_output::window(2);
    std::string const half(window / 2, 'x');
    here.output.take(1, {kind::out, half.substr(1)});
    auto const at_half = here.room[1];
    here.output.take(1, {kind::out, "xy"});
    here.end();
    EXPECT_EQ(at_half, 0u) << "the shim has enough left";
    EXPECT_EQ(here.room[1], window / 2 + 1);
    EXPECT_EQ(here.room[0], 0u);
}

TEST(remote_output, makes_no_room_while_nobody_reads) {
    launcher_output here(3);
    auto [from, to] = make_pipe();
    here.out.emplace(STDOUT_FILENO, to.get());
    std::string const lines(remote_output::window(3), '\n');
    std::size_t taken = 0;
    for (; taken <= output_writer::high_water_bytes + (1u << 20); taken += lines.size()) here.output.take(0, {kind::out, lines});
    bool const congested = here.writer.congested();
    auto const before = here.room;
    here.output.take(1, {kind::out, lines});
    here.output.take(0, {kind::out, lines});
    here.output.resume();
    auto const meanwhile = here.room;
    taken += 2 * lines.size();
    std::string all(taken, 0);
    for (std::size_t got = 0; got < taken;) {
        auto const n = ::read(from.get(), all.data() + got, taken - got);
        if (n <= 0) break;
        got += static_cast<std::size_t>(n);
    }
    here.writer.drain(5);
    here.output.resume();
    here.end();
    EXPECT_TRUE(congested);
    EXPECT_EQ(meanwhile, before);
    EXPECT_EQ(all, std::string(taken, '\n'));
    EXPECT_EQ(here.room[0], taken - lines.size()) << "nothing is forgotten";
    EXPECT_EQ(here.room[1], lines.size());
}

TEST(remote_output, windows_of_many_ranks_are_small) {
    EXPECT_EQ(remote_output::window(1), 128u << 10);
    EXPECT_EQ(remote_output::window(2048), 32u << 10);
    EXPECT_EQ(remote_output::window(1'000'000), 16u << 10);
    EXPECT_EQ(remote_output::window(64, 8), 16u << 10) << "eight share what the kernel keeps of a connection";
    EXPECT_EQ(remote_output::window(1024, 1024), 2u << 10);
}

}  // namespace
}  // namespace muster
