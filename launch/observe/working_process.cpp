#include "launch/observe/working_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/process_stat.hpp"

namespace muster {

namespace {

bool kernel_lists_children() {
    static bool const lists = path_exists("/proc/thread-self/children");
    return lists;
}

std::vector<pid_t> listed_children(pid_t parent) {
    std::vector<pid_t> children;
    for (auto const& task : folder_entries(fmt::format("/proc/{}/task", parent))) {
        auto const text = read_text_file(task / "children");
        for (auto const word : split(trim(text), ' '))
            if (auto const pid = parse_integer(word); pid && is_alive(static_cast<pid_t>(*pid)))
                children.push_back(static_cast<pid_t>(*pid));
    }
    return children;
}

}  // namespace

pid_t working_process(pid_t rank, std::function<std::vector<pid_t>(pid_t)> const& children) {
    for (pid_t at = rank;;) {
        if (name_of_call(read_text_file(fmt::format("/proc/{}/syscall", at))) != "wait") return at;
        auto const below = children(at);
        if (below.size() != 1) return at;
        at = below.front();
    }
}

pid_t brief_look::working_process(pid_t rank) {
    return muster::working_process(rank, [this](pid_t parent) { return children_of(parent); });
}

bool brief_look::is_stopped(pid_t rank) {
    return is_held(working_process(rank));
}

std::optional<blocked_wait> brief_look::find_blocked(pid_t rank) {
    constexpr std::string_view mark = "\nvoluntary_ctxt_switches:";
    auto const pid = working_process(rank);
    auto const stat = read_process_stat(pid);
    if (!stat || stat->state != 'D') return std::nullopt;
    auto const text = read_text_file(fmt::format("/proc/{}/status", pid));
    auto const at = text.find(mark);
    auto const rest = at == text.npos ? std::string_view() : std::string_view(text).substr(at + mark.size());
    auto const waits = parse_integer(trim(rest.substr(0, rest.find('\n'))));
    return blocked_wait{static_cast<std::uint64_t>(waits.value_or(0)), place_of_sleep(pid)};
}

std::vector<pid_t> const& brief_look::children_of(pid_t parent) {
    if (!kernel_lists_children() && children_.empty()) children_ = living_children();
    auto const [known, is_new] = children_.try_emplace(parent);
    if (is_new && kernel_lists_children()) known->second = listed_children(parent);
    return known->second;
}

std::vector<pid_t> brief_look::tree_of(pid_t rank) {
    constexpr std::size_t most = 4096;
    std::vector<pid_t> tree{rank};
    for (std::size_t i = 0; i < tree.size() && tree.size() < most; ++i)
        std::ranges::copy(children_of(tree[i]), std::back_inserter(tree));
    return tree;
}

}  // namespace muster
