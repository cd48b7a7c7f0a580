#include "launch/observe/working_process.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/process/files.hpp"
#include "base/text.hpp"
#include "launch/observe/process_sight.hpp"
#include "launch/system/end_processes.hpp"

namespace muster {

namespace {

namespace fs = std::filesystem;

bool kernel_lists_children() {
    std::error_code fault;
    static bool const lists = fs::exists("/proc/thread-self/children", fault);
    return lists;
}

std::vector<pid_t> listed_children(pid_t parent) {
    std::vector<pid_t> children;
    std::error_code fault;
    for (auto at = fs::directory_iterator(fmt::format("/proc/{}/task", parent), fault); !fault && at != fs::directory_iterator();
         at.increment(fault)) {
        auto const text = read_text_file(at->path() / "children");
        for (auto const word : split(trim(text), ' '))
            if (auto const pid = parse_integer(word); pid && is_alive(static_cast<pid_t>(*pid)))
                children.push_back(static_cast<pid_t>(*pid));
    }
    return children;
}

std::multimap<pid_t, pid_t> read_all_children() {
    std::multimap<pid_t, pid_t> children;
    std::error_code fault;
    for (auto at = fs::directory_iterator("/proc", fault); !fault && at != fs::directory_iterator(); at.increment(fault)) {
        auto const pid = parse_integer(at->path().filename().string());
        if (pid && is_alive(static_cast<pid_t>(*pid)))
            children.emplace(parent_of(static_cast<pid_t>(*pid)), static_cast<pid_t>(*pid));
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

std::vector<pid_t> brief_look::children_of(pid_t parent) {
    if (kernel_lists_children()) return listed_children(parent);
    if (!all_) all_ = read_all_children();
    std::vector<pid_t> children;
    auto const [first, last] = all_->equal_range(parent);
    for (auto it = first; it != last; ++it) children.push_back(it->second);
    return children;
}

}  // namespace muster
