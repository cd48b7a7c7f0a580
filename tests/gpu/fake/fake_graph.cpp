// The driver's graphs in the fake: see fake_gpu.hpp. A launch of a graph is one task on its stream, which runs the graph's streams.
#include <algorithm>
#include <deque>
#include <map>

#include "fake_gpu.hpp"

using namespace muster::fake;
using guard = std::scoped_lock<std::mutex>;

namespace {

constexpr int ok = 0;
constexpr int not_supported = 801;
constexpr int capture_unjoined = 904;
constexpr int illegal_state = 401;

/// One launch under way: a queue for each stream that took part in the capture.
struct graph_run {
    std::vector<std::deque<task>> lanes;
    std::vector<bool> passed;

    explicit graph_run(capture const& of) : passed(of.marks) {
        std::map<stream*, std::size_t> lane_of;
        for (auto const& each : of.nodes) {
            auto const [place, is_new] = lane_of.emplace(each.on, lanes.size());
            if (is_new) lanes.emplace_back();
            lanes[place->second].push_back(task_of(each));
        }
    }
    task task_of(capture::node const& of) {
        if (of.what == capture::node::kind::work) return of.make();
        if (of.what == capture::node::kind::wait) return [this, mark = of.mark] { return static_cast<bool>(passed[mark]); };
        return [this, mark = of.mark] { return passed[mark] = true; };
    }
    /// Whether all of it is through.
    bool run(bool last_first) {
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t i = 0; i < lanes.size() && !(moved && last_first); ++i)
                moved = run_lane(lanes[last_first ? lanes.size() - 1 - i : i], last_first) || moved;
        }
        return std::all_of(lanes.begin(), lanes.end(), [](auto const& lane) { return lane.empty(); });
    }
    /// As far as it goes, or one task of it. Whether anything was done.
    static bool run_lane(std::deque<task>& lane, bool one) {
        bool moved = false;
        while (!lane.empty() && !(moved && one) && lane.front()()) {
            lane.pop_front();
            moved = true;
        }
        return moved;
    }
};

/// Whether the origin waits, at last, for everything that the other streams were given.
bool all_joined(capture const& of) {
    using kind = capture::node::kind;
    for (auto const& node : of.nodes) {
        if (node.on == of.origin || node.what != kind::work) continue;
        auto const behind = [&](auto const& each) { return each.on == node.on && each.what == kind::record && &each > &node; };
        bool const joined = std::any_of(of.nodes.begin(), of.nodes.end(), [&](auto const& record) {
            return behind(record) && std::any_of(of.nodes.begin(), of.nodes.end(), [&](auto const& wait) {
                       return wait.on == of.origin && wait.what == kind::wait && wait.mark == record.mark;
                   });
        });
        if (!joined) return false;
    }
    return true;
}

}  // namespace

extern "C" {

int cuStreamBeginCapture_v2(void* handle, int) {
    guard const held(the_machine().lock);
    if (the_machine().knob("no_capture") != 0) return not_supported;
    auto& on = *static_cast<stream*>(handle);
    if (on.into) return illegal_state;
    on.into = std::make_shared<capture>();
    on.into->origin = &on;
    return ok;
}
int cuStreamEndCapture(void* handle, void** graph) {
    guard const held(the_machine().lock);
    *graph = nullptr;
    auto const made = static_cast<stream*>(handle)->into;
    if (!made || made->origin != handle) return illegal_state;
    made->over = true;
    for (auto* const each : the_machine().streams)
        if (each->into == made) each->into = nullptr;
    if (!all_joined(*made)) return capture_unjoined;
    the_machine().note("a graph of " + std::to_string(made->nodes.size()) + " nodes");
    *graph = new std::shared_ptr<capture>(made);
    return ok;
}
int cuGraphInstantiateWithFlags(void** ready, void* graph, unsigned long long) {
    *ready = new std::shared_ptr<capture>(*static_cast<std::shared_ptr<capture>*>(graph));
    return ok;
}
int cuGraphLaunch(void* ready, void* on) {
    {
        guard const held(the_machine().lock);
        the_machine().note("cuGraphLaunch");
    }
    auto const graph = *static_cast<std::shared_ptr<capture>*>(ready);
    return put_on(on, [graph] {
        auto const run = std::make_shared<std::unique_ptr<graph_run>>();
        return [graph, run] {
            if (!*run) *run = std::make_unique<graph_run>(*graph);
            return (*run)->run(the_machine().knob("last_first") != 0);
        };
    });
}
int cuGraphDestroy(void* graph) {
    delete static_cast<std::shared_ptr<capture>*>(graph);
    return ok;
}
int cuGraphExecDestroy(void* ready) {
    delete static_cast<std::shared_ptr<capture>*>(ready);
    return ok;
}
}
