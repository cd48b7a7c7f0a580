#include "io/stage/on_nodes.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "base/command/command_set.hpp"
#include "base/process/files.hpp"
#include "base/text.hpp"
#include "base/throw_error.hpp"
#include "base/units.hpp"
#include "comm/backend/comm_error.hpp"
#include "comm/run_with_ranks.hpp"
#include "io/dataset/file_ranks.hpp"
#include "io/stage/progress.hpp"
#include "io/tree/chunk_plan.hpp"

namespace muster::stage {

namespace {

std::vector<int> first_ranks(communicator& ranks, identity const& who) {
    std::vector<std::int32_t> first(static_cast<std::size_t>(ranks.size()));
    std::int32_t mine = who.local_rank == 0 ? 1 : 0;
    ranks.allgather("first ranks of the nodes", view_of(std::span(&mine, 1)), view_of(std::span(first))).wait();
    std::vector<int> out;
    for (std::size_t i = 0; i < first.size(); ++i)
        if (first[i] != 0) out.push_back(static_cast<int>(i));
    return out;
}

/// The body's exit code, or that of its error, which is then told here: the others wait for it.
int code_of(communicator& nodes, std::function<int(communicator&)> const& body) {
    try {
        return body(nodes);
    } catch (comm_error const& e) {
        if (e.code() == errc::timeout || e.code() == errc::peer_failed) throw;  // not agreed: others may be gone
        if (nodes.rank() == 0) print_error("muster-stage", e.what());
        return exit_code(e.code());
    } catch (error const& e) {
        if (nodes.size() > 1) throw;
        print_error("muster-stage", e.what());
        return exit_code(e.code());
    }
}

/// In a job script a command reaches the script's own node alone, and with -n 1 that of the one rank.
void note_nodes_left(identity const& who, environment const& variables) {
    int const all = nodes_of_job(variables);
    if (who.rank != 0 || who.node_count >= all) return;
    fmt::print(
        stderr,
        "muster-stage: note: this is for {} of the job's {} nodes; `muster run -- muster stage …`, without -n, is for all, "
        "if each has its own target\n",
        who.node_count, all);
}

}  // namespace

int nodes_of_job(environment const& variables) {
    if (auto const slurm = parse_integer(variables.get_or("SLURM_JOB_NUM_NODES", "")); slurm && *slurm > 0 && *slurm < 1'000'000)
        return static_cast<int>(*slurm);
    auto const file = variables.get_or("PBS_NODEFILE", "");
    std::error_code ignored;
    if (file.empty() || !std::filesystem::is_regular_file(file, ignored)) return 0;
    auto const text = read_text_file(file);
    std::set<std::string_view> names;
    for (auto const line : split(text, '\n'))
        if (!trim(line).empty()) names.insert(trim(line));
    return static_cast<int>(names.size());
}

int on_nodes(identity const& who, environment const& variables, std::function<int(communicator&)> const& body) {
    note_nodes_left(who, variables);
    return run_with_ranks("muster-stage", who, options_for_files(who), [&](communicator& ranks) {
        if (ranks.size() == 1) return body(ranks);
        auto const first = first_ranks(ranks, who);
        if (first.size() == static_cast<std::size_t>(ranks.size())) return body(ranks);
        communicator nodes = ranks.include(first);
        std::int32_t code = nodes ? code_of(nodes, body) : 0;
        operation agreement = ranks.allreduce("exit code", view_of(std::span(&code, 1)), reduction::max);
        while (!agreement.done()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return static_cast<int>(code);
    });
}

std::uint64_t sum_of(communicator& nodes, std::uint64_t mine) {
    auto value = static_cast<std::int64_t>(mine);
    nodes.allreduce("sum", view_of(std::span(&value, 1)), reduction::sum).wait();
    return static_cast<std::uint64_t>(value);
}

copy_request copy_request_of(given_options const& given, environment const& variables) {
    copy_request request;
    auto const& words = given.words();
    if (words.size() < 2)
        throw_error(errc::usage, "{}: {} missing; give what to copy, and then the folder to copy to", given.command(),
                    words.empty() ? "the sources are" : "the target folder is");
    request.sources.assign(words.begin(), words.end() - 1);
    request.target = words.back();
    while (request.target.size() > 1 && request.target.ends_with('/')) request.target.pop_back();
    std::string const check = given.text("check");
    if (check != "fast" && check != "full")
        throw_error(errc::usage, "{}: --check: '{}' is neither fast nor full", given.command(), check);
    request.check = check == "full" ? copy_check::full : copy_check::fast;
    request.sync = given.has("fsync");
    request.dry_run = given.has("dry-run");
    request.chunk_bytes = chunk_bytes_for(find_source_blocks(request.sources.front(), variables));
    return request;
}

void print_copy(copy_request const& request, copy_report const& mine, communicator& nodes, double seconds, bool as_json) {
    bool const divided = request.sharded || request.own_sources;
    std::uint64_t const written = sum_of(nodes, mine.bytes_written), read = sum_of(nodes, mine.bytes_read);
    std::uint64_t const there = sum_of(nodes, mine.files_there), resumed = sum_of(nodes, mine.bytes_resumed);
    std::uint64_t const files = divided ? sum_of(nodes, mine.files) : mine.files;
    std::uint64_t const bytes = divided ? sum_of(nodes, mine.bytes) : mine.bytes;
    std::uint64_t const lacking = sum_of(nodes, mine.bytes - mine.bytes_there - mine.bytes_resumed);
    if (nodes.rank() != 0) return;
    if (as_json) {
        nlohmann::ordered_json const all{{"target", request.target}, {"nodes", nodes.size()},      {"files", files},
                                         {"folders", mine.folders},  {"links", mine.links},        {"bytes", bytes},
                                         {"files_there", there},     {"bytes_resumed", resumed},   {"bytes_read", read},
                                         {"bytes_written", written}, {"dry_run", request.dry_run}, {"seconds", seconds}};
        fmt::print("{}\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
        return;
    }
    std::string const where =
        nodes.size() == 1 ? std::string() : fmt::format(" {} {} nodes", divided ? "over" : "on each of", nodes.size());
    auto const all_of = [](std::uint64_t n, std::string_view what) { return counted(static_cast<std::int64_t>(n), what); };
    fmt::print("{}: {}, {}, {}, {}{}\n", without_controls(request.target), all_of(files, "file"), all_of(mine.folders, "folder"),
               all_of(mine.links, "link"), format_bytes(bytes), where);
    if (there > 0) fmt::print("{} file{} there already\n", there, there == 1 ? " was" : "s were");
    if (resumed > 0) fmt::print("{} were there from a copy that had not ended\n", format_bytes(resumed));
    if (request.dry_run) {
        fmt::print("{} would be written; nothing was, because of --dry-run\n", format_bytes(lacking));
        return;
    }
    fmt::print("{} read from the source, {} written in {} ({})\n", format_bytes(read), format_bytes(written),
               format_duration(duration{seconds}), format_rate(static_cast<double>(written) / seconds));
}

}  // namespace muster::stage
