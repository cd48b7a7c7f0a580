#include "launch/ranks/rank_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>

#include "base/process/files.hpp"
#include "launch/ranks/output_writer.hpp"

namespace muster {
namespace {

/// Standard output becomes a pipe whose other end is read here.
class captured_stdout {
  public:
    captured_stdout() : before_(::dup(STDOUT_FILENO)) {
        auto [from, to] = make_pipe();
        from_ = std::move(from);
        ::dup2(to.get(), STDOUT_FILENO);
    }
    ~captured_stdout() { restore(); }
    void restore() {
        if (before_) ::dup2(before_.get(), STDOUT_FILENO);
        before_.reset();
    }
    void stop_reading() { from_.reset(); }
    std::string text() {
        restore();  // closes the pipe's other end
        std::string all;
        char bytes[4096];
        for (ssize_t n = 0; (n = ::read(from_.get(), bytes, sizeof bytes)) > 0;) all.append(bytes, static_cast<std::size_t>(n));
        return all;
    }

  private:
    unique_fd before_;
    unique_fd from_;
};

void print(rank_stream const& stream, std::string const& text) {
    ASSERT_EQ(::write(stream.child_fd(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

TEST(output_pump, passes_lines_on_and_tells_of_them) {
    captured_stdout captured;
    event_loop loop;
    rank_stream stream(STDOUT_FILENO, {"[a:0] ", false, false}, {});
    output_writer writer;
    output_pump pump(loop, writer);
    int reads = 0;
    pump.add(stream, [&] { ++reads; });
    print(stream, "one\ntwo");
    loop.after(duration(0.2), [&] { loop.stop(); });
    loop.run();
    EXPECT_EQ(reads, 1);
    pump.finish();
    writer.drain_briefly();
    EXPECT_EQ(captured.text(), "[a:0] one\n[a:0] two\n");
    EXPECT_EQ(stream.last_lines(), "one\ntwo");
}

TEST(output_pump, a_bar_shows_at_once_and_other_ranks_lines_stay_whole) {
    captured_stdout captured;
    event_loop loop;
    rank_stream bar(STDOUT_FILENO, {}, {});
    rank_stream lines(STDOUT_FILENO, {}, {});
    output_writer writer;
    output_pump pump(loop, writer);
    pump.add(bar, [] {});
    pump.add(lines, [&] { loop.stop(); });
    print(bar, "\r 10%");
    loop.after(partial_patience * 1.5, [&] { print(lines, "epoch 1\n"); });
    loop.run();
    print(bar, "\r 20%\n");
    pump.finish();
    writer.drain_briefly();
    EXPECT_EQ(captured.text(), "\r 10%\nepoch 1\n\r 20%\n");
}

/// Whether an epoll set of this process watches it.
bool is_watched(int fd) {
    auto const entry = fmt::format("tfd: {:8d} ", fd);
    for (auto const& each : std::filesystem::directory_iterator("/proc/self/fdinfo"))
        if (read_text_file(each.path().string()).find(entry) != std::string::npos) return true;
    return false;
}

TEST(output_pump, an_ended_stream_is_not_watched_though_another_process_still_holds_it) {
    event_loop loop;
    rank_stream stream(STDOUT_FILENO, {}, {});
    output_writer writer;
    output_pump pump(loop, writer);
    pump.add(stream, [] {});
    int const number = stream.read_fd();
    unique_fd const copy(::dup(number));  // as a process has that was just forked
    ASSERT_TRUE(is_watched(number));
    stream.close_child_end();
    loop.after(duration(0.2), [&] { loop.stop(); });
    loop.run();
    EXPECT_FALSE(stream.open());
    EXPECT_FALSE(is_watched(number)) << "the loop would be woken for it all the time";
}

TEST(output_pump, reads_no_more_while_nobody_reads_its_own_output) {
    ::signal(SIGPIPE, SIG_IGN);  // what is still written when nobody reads any more
    captured_stdout captured;
    event_loop loop;
    rank_stream stream(STDOUT_FILENO, {}, {});
    output_writer writer;
    output_pump pump(loop, writer);
    std::size_t read = 0;
    pump.add(stream, [&] { ++read; });
    std::string const line = std::string(65535, 'x') + "\n";
    std::size_t written = 0;
    ::fcntl(stream.child_fd(), F_SETFL, O_NONBLOCK);
    std::function<void()> const fill = [&] {
        ssize_t n = 0;
        while ((n = ::write(stream.child_fd(), line.data(), line.size())) > 0) written += static_cast<std::size_t>(n);
        loop.after(duration(0.002), fill);
    };
    fill();
    loop.after(duration(1.5), [&] { loop.stop(); });
    loop.run();
    EXPECT_GT(written, output_writer::high_water_bytes);
    EXPECT_LT(written, output_writer::high_water_bytes + (std::size_t{4} << 20)) << "it did not stop reading";
    captured.stop_reading();
}

TEST(output_pump, ends_ranks_whose_reader_has_gone) {
    ::signal(SIGPIPE, SIG_IGN);
    captured_stdout captured;
    captured.stop_reading();
    event_loop loop;
    rank_stream out(STDOUT_FILENO, {}, {});
    rank_stream err(STDERR_FILENO, {}, {});
    output_writer writer;
    output_pump pump(loop, writer);
    pump.add(out, [] {});
    pump.add(err, [] {});
    loop.watch_readable(writer.event_fd(), [&] {
        writer.clear_event();
        if (writer.broken(STDOUT_FILENO)) pump.close_streams_to(STDOUT_FILENO);
    });
    print(out, "lost\n");
    loop.after(duration(0.5), [&] { loop.stop(); });
    loop.run();
    EXPECT_FALSE(out.open());
    EXPECT_TRUE(err.open());
}

}  // namespace
}  // namespace muster
