// The main of tests that run on several ranks: all ranks run the same tests; rank 0 reports, and every rank its failures; a
// failure of any rank is a failure of all. `--backend=NAME` forces a backend.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/environment.hpp"
#include "base/log.hpp"
#include "mpi_test.hpp"
#include "pmix/identity.hpp"

namespace muster::test {

namespace {

std::optional<communicator> all_ranks;

/// Prints failures only, each line with "HOST:RANK".
class failure_printer : public testing::EmptyTestEventListener {
  public:
    explicit failure_printer(std::string prefix) : prefix_(std::move(prefix)) {}

    void OnTestStart(testing::TestInfo const& test) override { test_ = std::string(test.test_suite_name()) + "." + test.name(); }

    void OnTestPartResult(testing::TestPartResult const& result) override {
        if (!result.failed()) return;
        std::string const place =
            result.file_name() != nullptr ? std::string(result.file_name()) + ":" + std::to_string(result.line_number()) : "?";
        std::string const text = test_ + " failed at " + place + "\n" + result.message() + "\n";
        std::string out;
        for (std::size_t begin = 0; begin < text.size();) {
            std::size_t const end = text.find('\n', begin);
            out += prefix_ + text.substr(begin, end - begin) + "\n";
            begin = end + 1;
        }
        std::fputs(out.c_str(), stderr);
    }

  private:
    std::string prefix_;
    std::string test_;  // asking gtest for it within OnTestPartResult would lock twice
};

/// This rank's failures become known to all: which ranks failed.
std::vector<int> failed_ranks(bool failed_here) {
    std::int32_t const mine = failed_here ? 1 : 0;
    std::vector<std::int32_t> all(static_cast<std::size_t>(all_ranks->size()));
    all_ranks->allgather("test results", input_of(std::span(&mine, 1)), view_of(std::span(all))).wait();
    std::vector<int> failed;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (all[rank] != 0) failed.push_back(static_cast<int>(rank));
    return failed;
}

int run(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    identity const who = identify(environment::capture());
    init_log("warning", who.host, who.rank);
    comm_options options;
    options.deadline = duration{60.0};
    for (int i = 1; i < argc; ++i)
        if (std::string const argument = argv[i]; argument.starts_with("--backend=")) options.backend = argument.substr(10);
    all_ranks.emplace(communicator::create(who, options));

    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    std::string const prefix = who.host + ":" + std::to_string(who.rank) + " ";
    if (who.rank == 0) {
        std::printf("%d rank(s), backend %s\n", who.world_size, std::string(all_ranks->backend()).c_str());
    } else {
        delete listeners.Release(listeners.default_result_printer());
        listeners.Append(new failure_printer(prefix));
    }
    int const result = RUN_ALL_TESTS();
    auto const failed = failed_ranks(result != 0);
    if (who.rank == 0)
        for (int const rank : failed) std::printf("FAILED on rank %d (%s)\n", rank, all_ranks->host_of(rank).c_str());
    all_ranks.reset();
    return failed.empty() ? 0 : 1;
}

}  // namespace

communicator& ranks() {
    return *all_ranks;
}

}  // namespace muster::test

int main(int argc, char** argv) {
    try {
        return muster::test::run(argc, argv);
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        std::_Exit(125);  // no destructor may wait for the other ranks now
    }
}
