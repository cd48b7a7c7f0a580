#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/run_with_ranks.hpp"
#include "io/dataset/checksum.hpp"
#include "io/dataset/dataset.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/options.hpp"
#include "io/stage/progress.hpp"
#include "io/dataset/file_ranks.hpp"

namespace muster::stage {

namespace {

constexpr std::string_view help_text =
    R"(muster-stage verify FILE [options]

Reads every sample of a dataset file and checks shapes, checksums and the range of labels. Ends 0 if all is right, else says which samples are damaged.

  muster-stage verify fashion.h5
  muster run -n 4 -- muster-stage verify fashion.h5       the same on 4 ranks, each with its part

  --split NAME    only this split
  --json          report as JSON
  -h, --help      this text
)";

std::vector<option> const known{{"split"}, {"json", true}, {"help,h", true}};

int verify(std::string const& path, options const& given, communicator& ranks) {
    bool const first = ranks.rank() == 0;

    std::vector<std::string> splits;
    if (auto const only = given.text("split"))
        splits = {*only};
    else
        splits = dataset::splits(path, ranks);
    nlohmann::ordered_json report = nlohmann::ordered_json::array();
    for (std::string const& split : splits) {
        auto const begin = std::chrono::steady_clock::now();
        dataset const checked = dataset::open(path, ranks, split);
        std::uint64_t const bytes = static_cast<std::uint64_t>(checked.size()) * (checked.image_bytes() + 1);
        hyperslab const mine = shard_of_blocks(checked.size(), checked.info().checksum_block_samples, ranks.rank(), ranks.size());
        checked.verify(progress("verify /" + split, mine.count * (checked.image_bytes() + 1), first && !given.has("json")));
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (!first) continue;
        if (given.has("json"))
            report.push_back({{"file", path},
                              {"split", split},
                              {"ok", true},
                              {"samples", checked.size()},
                              {"bytes", bytes},
                              {"seconds", seconds},
                              {"checksum_images", format_checksum(checked.info().checksum_images)},
                              {"checksum_labels", format_checksum(checked.info().checksum_labels)}});
        else
            fmt::print("{}: /{}: {} samples, {} in {}: ok\n", path, split, checked.size(), format_bytes(bytes),
                       format_duration(duration{seconds}));
    }
    if (first && given.has("json")) fmt::print("{}\n", report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
}

}  // namespace

int verify_command(std::vector<std::string> const& args, identity const& who) {
    options const given("verify", known, args, 1);
    if (given.has("help")) {
        if (who.rank == 0) fmt::print("{}", help_text);
        return 0;
    }
    if (given.files().empty())
        throw error(errc::usage, "muster-stage verify: give the dataset file; muster-stage verify --help lists the options");
    std::string const path = given.files().front();
    return with_ranks("muster-stage", who, together::options_for_files(who), [&](communicator& ranks) { return verify(path, given, ranks); });
}

}  // namespace muster::stage
