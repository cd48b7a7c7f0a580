// Runs one of a program's fuzz targets without libFuzzer: every file of the corpus folders, then so many inputs (or as many as fit in so many
// seconds) made from them by a generator with a fixed seed, so that a failure comes back.
// usage: PROGRAM TARGET [--iterations N] [--seconds T] [--seed S] [--max-bytes B] FILE|FOLDER... The input
// at hand is kept in the file $MUSTER_FUZZ_CRASH (default ./crash-TARGET) while a failure is being reported.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/fuzz/fuzz_target.hpp"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

namespace fs = std::filesystem;
using bytes = std::vector<std::uint8_t>;

fuzz_target const* target = fuzz_targets;

void choose_target(std::string const& name) {
    for (; target->name != nullptr; ++target)
        if (target->name == name) return;
    std::fprintf(stderr, "no fuzz target '%s' in this program; it has:", name.c_str());
    for (auto const* other = fuzz_targets; other->name != nullptr; ++other) std::fprintf(stderr, " %s", other->name);
    std::fputs("\n", stderr);
    std::exit(2);
}

// At hand for the handlers, which may only use what is async-signal-safe.
std::uint8_t const* current_data = nullptr;
std::size_t current_size = 0;
std::string crash_path;

void keep_current() {
    int const fd = ::open(crash_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return;
    [[maybe_unused]] auto const written = ::write(fd, current_data, current_size);
    ::close(fd);
    constexpr char text[] = "the input is kept in ";
    [[maybe_unused]] auto told = ::write(STDERR_FILENO, text, sizeof text - 1);
    told = ::write(STDERR_FILENO, crash_path.data(), crash_path.size());
    told = ::write(STDERR_FILENO, "\n", 1);
}

extern "C" void on_fatal_signal(int signal_number) {
    keep_current();
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);
}

/// An input that takes 20 s of processor time is a failure too; or, should it wait for something, 5 minutes of any time: a busy
/// machine is no failure.
void limit_time() {
    itimerval const limit{{0, 0}, {20, 0}};
    ::setitimer(ITIMER_PROF, &limit, nullptr);
    ::alarm(300);
}

void run(bytes const& input) {
    // A block of exactly this size, so that a sanitizer sees the first byte read behind it.
    bytes const exact(input.begin(), input.end());
    current_data = exact.data();
    current_size = exact.size();
    try {
        target->run(exact.data(), exact.size());
    } catch (...) {
        keep_current();  // while it is there
        current_data = nullptr;
        throw;
    }
    current_data = nullptr;
    current_size = 0;
}

bytes read_file(fs::path const& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        std::fprintf(stderr, "cannot read %s\n", path.c_str());
        std::exit(2);
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

class mutator {
  public:
    mutator(std::vector<bytes> const& corpus, std::uint64_t seed, std::size_t most)
        : corpus_(corpus), random_(seed), most_(most) {}

    bytes next() {
        bytes input = pick();
        for (auto left = below(6) + 1; left > 0; --left) change(input);
        if (input.size() > most_) input.resize(most_);
        return input;
    }

  private:
    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : static_cast<std::size_t>(random_() % bound); }
    bytes const& pick() { return corpus_[below(corpus_.size())]; }
    std::ptrdiff_t place(bytes const& in) { return static_cast<std::ptrdiff_t>(below(in.size() + 1)); }

    /// A piece of one of the inputs.
    bytes piece() {
        auto const& from = pick();
        auto const start = below(from.size());
        auto const size = std::min(below(32) + 1, from.size() - start);
        return {from.begin() + static_cast<std::ptrdiff_t>(start), from.begin() + static_cast<std::ptrdiff_t>(start + size)};
    }

    void change(bytes& input) {
        static constexpr std::uint8_t telling[]{0,    1,   0x7f, 0x80, 0xff, 0xfe, '\n', '\r', '"',
                                                '\'', '[', ']',  ',',  '-',  '=',  ' ',  '0',  '9'};
        switch (below(7)) {
            case 0:
                if (!input.empty()) input[below(input.size())] ^= static_cast<std::uint8_t>(1u << below(8));
                break;
            case 1:
                if (!input.empty()) input[below(input.size())] = telling[below(std::size(telling))];
                break;
            case 2: input.insert(input.begin() + place(input), telling[below(std::size(telling))]); break;
            case 3: {
                auto const from = place(input);
                auto const size = static_cast<std::ptrdiff_t>(below(16) + 1);
                input.erase(input.begin() + from,
                            input.begin() + std::min(from + size, static_cast<std::ptrdiff_t>(input.size())));
                break;
            }
            case 4: {
                auto const added = piece();
                input.insert(input.begin() + place(input), added.begin(), added.end());
                break;
            }
            case 5: {
                // A number becomes a large, a negative or an empty one.
                static char const* const numbers[]{
                    "0", "-1", "99999999999999999999", "2147483648", "4294967296", "18446744073709551615", "1e999", ""};
                std::string const number = numbers[below(std::size(numbers))];
                std::size_t from = below(input.size());
                while (from < input.size() && (input[from] < '0' || input[from] > '9')) ++from;
                auto to = from;
                while (to < input.size() && input[to] >= '0' && input[to] <= '9') ++to;
                input.erase(input.begin() + static_cast<std::ptrdiff_t>(from), input.begin() + static_cast<std::ptrdiff_t>(to));
                input.insert(input.begin() + static_cast<std::ptrdiff_t>(from), number.begin(), number.end());
                break;
            }
            default: input.resize(below(input.size() + 1)); break;
        }
    }

    std::vector<bytes> const& corpus_;
    std::mt19937_64 random_;
    std::size_t most_;
};

}  // namespace

int main(int argc, char** argv) try {
    std::uint64_t iterations = 0;
    std::chrono::seconds time{0};
    std::uint64_t seed = 1;
    std::size_t most = 4096;
    std::vector<bytes> corpus;
    char const* const kept_in = std::getenv("MUSTER_FUZZ_CRASH");
    choose_target(argc > 1 ? argv[1] : "");
    crash_path = kept_in ? kept_in : "crash-" + std::string(target->name);
    for (int i = 2; i < argc; ++i) {
        std::string const word = argv[i];
        bool const has_value = i + 1 < argc;
        if (word == "--iterations" && has_value)
            iterations = std::stoull(argv[++i]);
        else if (word == "--seconds" && has_value)
            time = std::chrono::seconds(std::stoull(argv[++i]));
        else if (word == "--seed" && has_value)
            seed = std::stoull(argv[++i]);
        else if (word == "--max-bytes" && has_value)
            most = std::stoull(argv[++i]);
        else if (fs::is_directory(word)) {
            // In order of names: folders list their files in any order, and the inputs made from them depend on it.
            std::set<fs::path> files;
            for (auto const& entry : fs::directory_iterator(word)) files.insert(entry.path());
            for (auto const& file : files) corpus.push_back(read_file(file));
        } else
            corpus.push_back(read_file(word));
    }
    for (int const s : {SIGSEGV, SIGABRT, SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGALRM, SIGPROF}) ::signal(s, on_fatal_signal);
    if (&__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(keep_current);
    auto const files = corpus.size();
    for (auto const& input : corpus) run(input);
    if (corpus.empty()) corpus.emplace_back();
    mutator make(corpus, seed, most);
    auto const end = std::chrono::steady_clock::now() + time;
    std::uint64_t made = 0;
    for (; made < iterations || std::chrono::steady_clock::now() < end; ++made) {
        limit_time();
        run(make.next());
    }
    std::printf("%zu files, %llu inputs made from them\n", files, static_cast<unsigned long long>(made));
    return 0;
} catch (std::exception const& e) {
    std::fprintf(stderr, "uncaught: %s\n", e.what());
    return 1;
}
