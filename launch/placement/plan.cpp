#include "launch/placement/plan.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "launch/placement/this_node.hpp"

namespace muster {

namespace {

/// A job without GPUs on a node that has some has mostly not requested them.
std::string describe_no_gpu(topology const& machine, bool in_job) {
    auto const slots = in_job ? "slots are those of the job" : "slots are cores";
    if (machine.gpus_hidden_by.empty()) return fmt::format("no GPU, so {}: {}", slots, machine.gpu_note);
    auto const whose =
        machine.gpus_in_node > 0 ? fmt::format("the GPUs of {}", machine.host) : std::string("GPUs, if there are any,");
    return fmt::format("{} are hidden from this {} by {}, so {}: {}", whose, in_job ? "job" : "process", machine.gpus_hidden_by,
                       slots, machine.gpu_note);
}

/// Adds the note on GPUs, once for all nodes with the same note.
void add_notes(plan& p, placement_request const& wanted) {
    std::set<std::string> said;
    auto const add = [&](std::string const& note) {
        if (said.insert(note).second) p.notes.push_back(note);
    };
    if (!p.map.note.empty()) add(p.map.note);
    for (auto const& shape : p.shapes) {
        auto const& machine = shape.machine;
        if (machine.gpus.empty())
            add(describe_no_gpu(machine, p.given.scheduler != scheduler_kind::local));
        else if (!machine.gpus.front().known_to_driver)
            add(fmt::format("GPUs {}", machine.gpu_note));
        for (auto const& note : binding_notes(machine, wanted, shape.bindings)) add(note);
    }
    if (int const unknown = p.unknown_nodes(); unknown > 0)
        add(
            fmt::format("GPUs and cores of {} of {} nodes are not known from here: each node finds its own when the ranks start; "
                        "--topology FILE.xml shows them as if they were like that machine",
                        unknown, p.map.nodes_used()));
}

}  // namespace

binding const* plan::binding_of(rank_place const& place) const {
    int const shape = shape_of_node[static_cast<std::size_t>(place.node)];
    return shape < 0 ? nullptr : &shapes[static_cast<std::size_t>(shape)].bindings[static_cast<std::size_t>(place.local_rank)];
}

int plan::unknown_nodes() const {
    int count = 0;
    for (std::size_t n = 0; n < shape_of_node.size(); ++n) count += shape_of_node[n] < 0 && map.ranks_per_node[n] > 0;
    return count;
}

plan make_plan(allocation given, placement_request const& wanted, known_machines const& known) {
    plan p;
    p.given = std::move(given);
    if (known.every_node)
        for (auto& n : p.given.nodes)
            if (!n.gpus) n.gpus = static_cast<int>(known.every_node->gpus.size());
    p.map = map_ranks(p.given, wanted);
    std::map<int, int> like;  // by number of local ranks: the shape
    for (std::size_t n = 0; n < p.given.nodes.size(); ++n) {
        int const ranks = p.map.ranks_per_node[n];
        p.shape_of_node.push_back(-1);
        if (ranks == 0) continue;
        auto const* machine = known.every_node ? &*known.every_node : nullptr;
        bool const here = machine == nullptr && known.this_node && known.is_this_node && known.is_this_node(p.given.nodes[n]);
        if (here) machine = &*known.this_node;
        if (machine == nullptr) continue;
        auto const known_shape = like.find(ranks);
        if (known.every_node && known_shape != like.end()) {
            p.shape_of_node[n] = known_shape->second;
            continue;
        }
        p.shape_of_node[n] = like[ranks] = static_cast<int>(p.shapes.size());
        auto const here_wanted = with_share(wanted, p.given, p.given.nodes[n]);
        p.shapes.push_back({*machine, bind_ranks(*machine, here_wanted, ranks)});
        if (auto const note = share_note(*machine, here_wanted); !note.empty()) p.notes.push_back(note);
    }
    add_notes(p, wanted);
    return p;
}

}  // namespace muster
