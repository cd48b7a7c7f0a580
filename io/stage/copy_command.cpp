#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "io/copy/copy_target.hpp"
#include "io/copy/copy_tree.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/stage/commands.hpp"
#include "io/stage/on_nodes.hpp"
#include "io/stage/progress.hpp"
#include "io/stage/unpack_archive.hpp"
#include "io/tree/folder_files.hpp"

namespace muster::stage {

namespace {

unique_fd make_folder_in(int parent, char const* name) {
    if (::mkdirat(parent, name, 0700) != 0 && errno != EEXIST) throw_system("mkdir", name);
    unique_fd folder(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) throw_system("open", name);
    return folder;
}

struct stat status_of(int root, std::string const& archive) {
    struct stat found {};
    if (::fstatat(root, archive.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) throw_system("stat", archive);
    return found;
}

/// Says which archive a folder came from.
std::string stamp_of(struct stat const& found, std::string const& archive) {
    return fmt::format("{}\t{}\t{}.{:09}\n", archive, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

void unpack_one(copy_target const& target, std::string const& archive, std::optional<std::uint64_t> most_bytes) {
    struct stat const from = status_of(target.root(), archive);
    std::string const name = unpacked_name(archive), full = target.path() + "/" + name;
    std::string const stamp = stamp_of(from, archive);
    unique_fd const stamps = make_folder_in(target.state(), unpacked_folder_name);
    auto const known = read_whole_file(stamps.get(), name.c_str());
    struct stat found {};
    bool const there = ::fstatat(target.root(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
    if (there && known == stamp) return;
    if (there && !known)
        throw_error(errc::usage, "{} is there and was not unpacked from {}; remove it, or give another folder", full, archive);
    unique_fd const growing = make_folder_in(target.state(), "unpacking");
    remove_tree(growing.get(), name);
    unique_fd const inside = make_folder_in(growing.get(), name.c_str());
    unpack_limits limits = default_limits(static_cast<std::uint64_t>(from.st_size));
    limits.bytes = most_bytes.value_or(limits.bytes);
    try {
        unpack_archive(target.path() + "/" + archive, inside.get(), limits);
    } catch (...) {
        remove_tree(target.state(), "unpacking");  // its space is needed by who frees some
        throw;
    }
    if (there) remove_tree(target.root(), name);
    write_whole_file(stamps.get(), name, stamp);
    if (::fchmod(inside.get(), 0755) != 0 || ::renameat(growing.get(), name.c_str(), target.root(), name.c_str()) != 0)
        throw_system("rename to", full);
    remove_tree(target.state(), "unpacking");
}

/// Unpacks each source that is an archive, after it has been copied, to DST/NAME, which appears when it is whole. What is there from
/// the same archive stays; what is there from an older one is replaced. Throws errc::usage if none of
/// the sources is an archive, or if DST/NAME is there from something else, and as unpack_archive(), whose limit of bytes is `most_bytes`
/// or what suits the archive's size; what was unpacked until then is removed.
void unpack_sources(copy_request const& request, std::optional<std::uint64_t> most_bytes) {
    copy_target const target(request.target, request.state_name, false);
    bool any = false;
    for (std::string const& source : request.sources) {
        std::string const archive(name_of(source));
        if (unpacked_name(archive).empty()) continue;
        any = true;
        unpack_one(target, archive, most_bytes);
    }
    if (!any)
        throw error(errc::usage,
                    "--unpack: no source ends in .tar, .tar.gz, .tgz, .tar.zst, .tar.xz, .tar.bz2 or .zip; leave it out");
}

constexpr option_row copy_options[]{
    {"shard", 0, "", "each node gets its part of the files, about equal in bytes, not all", ""},
    {"unpack", 0, "", "unpack sources that are archives, such as packed environments, to DST/NAME", ""},
    {"unpack-limit", 0, "BYTES", "most that one archive may become; default: 1100 times its size, or 64MiB", ""},
    {"check", 0, "fast|full", "files that are there: trust size and time, or read them", "fast", false, "fast full"},
    {"fsync", 0, "", "end when everything is on the disks", ""},
    {"threads", 0, "N", "threads of each node; default: twice its processors, 8 to 32", ""},
    {"dry-run", 0, "", "say what would be copied, and whether there is space; write nothing", ""},
    {"progress", 0, "HOW", "none, bar, lines or json; default: bar on a terminal, else lines", "", false, "none bar lines json"},
    {"json", 0, "", "report as JSON", ""},
};

std::optional<std::uint64_t> unpack_limit_of(given_options const& given) {
    if (!given.has("unpack-limit")) return {};
    if (!given.has("unpack")) throw_error(errc::usage, "{}: --unpack-limit without --unpack; give both", given.command());
    return read_option([&] { return parse_bytes(given.text("unpack-limit"), "--unpack-limit"); });
}

}  // namespace

constexpr command_row copy_row{
    .name = "copy",
    .summary = "bring files and folders to a folder of every node",
    .synopsis = "SRC... DST [options]",
    .examples =
        "  muster run -- muster stage copy /project/imagenet /dev/shm/$USER     to every node\n"
        "  muster-stage copy data.h5 pack.tar.gz /tmp/$USER                     to this one\n",
    .options = copy_options,
    .description =
        "The nodes read each byte once, together, and send it to one another. A file gets its name when it is whole. Run it "
        "again\n"
        "after a failure: it goes on where it was. `DST/.muster-stage` keeps checksums for `verify`.",
    .most_words = 1000,
};

int copy_command(given_options const& given, identity const& who, environment const& variables) {
    copy_request request = copy_request_of(given, variables);
    request.sharded = given.has("shard");
    if (given.has("threads")) request.threads = static_cast<int>(given.integer("threads", 1, 1024));
    auto const most_bytes = unpack_limit_of(given);
    progress_style const style = parse_progress(given.text("progress"));
    return on_nodes(who, variables, [&](communicator& nodes) {
        auto const begin = std::chrono::steady_clock::now();
        request.progress = progress("copy", nodes.rank() == 0 ? style : progress_style::none);
        copy_report const report = copy_tree(request, nodes);
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (given.has("unpack") && !request.dry_run) {
            auto const unpack = [&] { unpack_sources(request, most_bytes); };
            run_step(nodes, "unpack in " + request.target, unpack, member_is::node);
        }
        print_copy(request, report, nodes, seconds, given.has("json"));
        return 0;
    });
}

}  // namespace muster::stage
