// The commands and their answers follow the description of the simple PMI-1 wire protocol in MPICH's manual for process managers.
#include "pmix/pmi1/pmi1_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace muster::pmix {

pmi1_job::pmi1_job(std::string name, int world_size)
    // "One block from node 0, one node, all ranks": without it the ranks would compare host names, one key each.
    : pmi1_job(std::move(name), world_size, world_size, fmt::format("(vector,(0,1,{}))", world_size)) {}

pmi1_job::pmi1_job(std::string name, int world_size, int local_size, std::string mapping)
    : name_(std::move(name)),
      world_size_(world_size),
      local_size_(local_size),
      alone_(local_size == world_size),
      waiting_(static_cast<std::size_t>(world_size)),
      spawns_(static_cast<std::size_t>(world_size)) {
    if (!mapping.empty()) values_["PMI_process_mapping"] = std::move(mapping);
}

std::optional<std::string> pmi1_job::take_part() {
    if (!std::exchange(part_due_, false)) return std::nullopt;
    return std::exchange(fresh_, {});
}

void pmi1_job::finish_barrier(std::string_view parts, std::vector<pmi1_reply>& replies) {
    for (auto const line : split(parts, '\n')) {
        auto const blank = line.find(' ');  // which neither a key nor a value holds
        if (blank == std::string_view::npos || bytes_ + line.size() > most_bytes) continue;
        auto const [entry, is_new] = values_.insert_or_assign(std::string(line.substr(0, blank)), std::string(line.substr(blank + 1)));
        if (is_new) bytes_ += line.size();
    }
    release(replies);
}

std::string pmi1_mapping(job const& description) {
    struct block {
        int node, nodes, ranks;
        bool operator==(block const&) const = default;
    };
    auto const nodes = nodes_of(description);
    std::vector<int> node_of(static_cast<std::size_t>(description.world_size));
    for (std::size_t n = 0; n < nodes.size(); ++n)
        for (int const rank : nodes[n].ranks) node_of.at(static_cast<std::size_t>(rank)) = static_cast<int>(n);
    std::vector<block> blocks;
    for (std::size_t first = 0, next = 0; first < node_of.size(); first = next) {
        while (next < node_of.size() && node_of[next] == node_of[first]) ++next;
        int const ranks = static_cast<int>(next - first);
        if (!blocks.empty() && blocks.back().ranks == ranks && blocks.back().node + blocks.back().nodes == node_of[first])
            ++blocks.back().nodes;
        else
            blocks.push_back({node_of[first], 1, ranks});
    }
    // A vector is gone through again and again as long as there are ranks.
    if (std::all_of(blocks.begin(), blocks.end(), [&](block const& one) { return one == blocks.front(); })) blocks.resize(1);
    std::string text = "(vector";
    for (auto const& one : blocks) text += fmt::format(",({},{},{})", one.node, one.nodes, one.ranks);
    return text.size() < pmi1_job::longest_value ? text + ")" : std::string();
}

std::string pmi1_job::greeting(int rank) const {
    return fmt::format("cmd=initack\ncmd=set size={}\ncmd=set rank={}\ncmd=set debug=0\n", world_size_, rank);
}

bool pmi1_job::take(int rank, std::string_view line, std::vector<pmi1_reply>& replies, std::vector<server_event>& events) {
    expect(rank >= 0 && rank < world_size_, "a rank of this job");
    if (spawns_[static_cast<std::size_t>(rank)].open) return spawn_line(rank, line, replies);
    if (line == "mcmd=spawn") {
        spawns_[static_cast<std::size_t>(rank)] = {.open = true};
        return true;
    }
    auto const message = parse_pmi1(line);
    return message && command(rank, *message, replies, events);
}

bool pmi1_job::command(int rank, pmi1_message const& message, std::vector<pmi1_reply>& replies,
                       std::vector<server_event>& events) {
    auto const what = message.get_or("cmd", "");
    auto const reply = [&](std::string text) {
        replies.push_back({rank, std::move(text) + "\n"});
        return true;
    };
    auto const event = [&](server_event::kind kind, int code) {
        events.push_back({.what = kind, .rank = rank, .code = code, .text = {}});
    };
    if (what == "init") {
        event(server_event::kind::connected, 0);
        return reply("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
    }
    if (what == "get_maxes")
        return reply(
            fmt::format("cmd=maxes kvsname_max={} keylen_max={} vallen_max={}", longest_name, longest_key, longest_value));
    if (what == "get_appnum") return reply("cmd=appnum appnum=0");
    if (what == "get_my_kvsname") return reply("cmd=my_kvsname kvsname=" + name_);
    if (what == "get_universe_size") return reply(fmt::format("cmd=universe_size size={}", world_size_));
    if (what == "put") return reply(put(message));
    if (what == "get") return reply(get(message));
    if (what == "getbyidx") return reply(get_by_index(message));
    if (what == "publish_name") return reply(publish(message));
    if (what == "unpublish_name") return reply(unpublish(message));
    if (what == "lookup_name") return reply(lookup(message));
    if (what == "barrier_in") {
        barrier(rank, replies);
        return true;
    }
    if (what == "finalize") {
        event(server_event::kind::finalized, 0);
        return reply("cmd=finalize_ack");
    }
    if (what == "abort") {
        // No answer: the client waits until it is killed with all the others.
        event(server_event::kind::aborted, message.number("exitcode").value_or(1));
        return true;
    }
    return false;
}

std::string pmi1_job::put(pmi1_message const& message) {
    auto const key = message.get_or("key", "");
    auto const value = message.get_or("value", "");
    if (message.get_or("kvsname", "") != name_) return "cmd=put_result rc=-1 msg=no_such_kvs";
    if (!is_pmi1_word(key, longest_key) || value.size() > longest_value) return "cmd=put_result rc=-1 msg=key_or_value_too_long";
    auto const [entry, fresh] = values_.try_emplace(std::string(key));
    auto const before = fresh ? 0 : entry->first.size() + entry->second.size();
    if (bytes_ - before + key.size() + value.size() > most_bytes) {
        if (fresh) values_.erase(entry);
        return "cmd=put_result rc=-1 msg=too_much_data";
    }
    entry->second = value;
    bytes_ += key.size() + value.size() - before;
    if (!alone_) fresh_ += fmt::format("{} {}\n", key, value);
    return "cmd=put_result rc=0 msg=success";
}

std::string pmi1_job::get(pmi1_message const& message) const {
    auto const found = values_.find(message.get_or("key", ""));
    if (message.get_or("kvsname", "") != name_ || found == values_.end())
        return "cmd=get_result rc=-1 msg=key_not_found value=unknown";
    return "cmd=get_result rc=0 msg=success value=" + found->second;
}

std::string pmi1_job::get_by_index(pmi1_message const& message) const {
    auto const index = message.number("idx").value_or(-1);
    if (message.get_or("kvsname", "") != name_ || index < 0 || static_cast<std::size_t>(index) >= values_.size())
        return "cmd=getbyidx_results rc=-2 reason=no_more_keyvals";
    auto const entry = std::next(values_.begin(), index);
    return fmt::format("cmd=getbyidx_results rc=0 nextidx={} key={} val={}", index + 1, entry->first, entry->second);
}

std::string pmi1_job::publish(pmi1_message const& message) {
    auto const service = message.get_or("service", "");
    auto const port = message.get_or("port", "");
    if (!is_pmi1_word(service, longest_value) || !is_pmi1_word(port, longest_value) ||
        bytes_ + service.size() + port.size() > most_bytes)
        return "cmd=publish_result rc=1 msg=bad_name";
    if (!services_.try_emplace(std::string(service), port).second) return "cmd=publish_result rc=1 msg=key_already_present";
    bytes_ += service.size() + port.size();
    return "cmd=publish_result info=ok rc=0 msg=success";
}

std::string pmi1_job::unpublish(pmi1_message const& message) {
    auto const found = services_.find(message.get_or("service", ""));
    if (found == services_.end()) return "cmd=unpublish_result rc=1 msg=service_not_found";
    bytes_ -= found->first.size() + found->second.size();
    services_.erase(found);
    return "cmd=unpublish_result info=ok rc=0 msg=success";
}

std::string pmi1_job::lookup(pmi1_message const& message) const {
    auto const found = services_.find(message.get_or("service", ""));
    if (found == services_.end()) return "cmd=lookup_result rc=1 msg=service_not_found";
    return fmt::format("cmd=lookup_result port={} info=ok rc=0 msg=success", found->second);
}

void pmi1_job::barrier(int rank, std::vector<pmi1_reply>& replies) {
    auto const index = static_cast<std::size_t>(rank);
    if (waiting_[index]) return;
    waiting_[index] = true;
    if (++waiting_count_ < local_size_) return;
    if (alone_)
        release(replies);
    else
        part_due_ = true;
}

void pmi1_job::release(std::vector<pmi1_reply>& replies) {
    for (int rank = 0; rank < world_size_; ++rank)
        if (waiting_[static_cast<std::size_t>(rank)]) replies.push_back({rank, "cmd=barrier_out\n"});
    waiting_.assign(waiting_.size(), false);
    waiting_count_ = 0;
}

/// A spawn comes in lines, one setting each, up to "endcmd"; several of them (`totspawns`) get one answer.
bool pmi1_job::spawn_line(int rank, std::string_view line, std::vector<pmi1_reply>& replies) {
    auto& request = spawns_[static_cast<std::size_t>(rank)];
    if (line.size() >= pmi1_longest_line) return false;
    auto const value_of = [line](std::string_view name) -> int {
        return static_cast<int>(parse_integer(line.substr(name.size())).value_or(1));
    };
    if (line.starts_with("totspawns=")) request.total = value_of("totspawns=");
    if (line.starts_with("spawnssofar=")) request.so_far = value_of("spawnssofar=");
    if (line != "endcmd") return true;
    request.open = false;
    // A job's ranks are counted, mapped and bound before the first one starts, so there is no place for later ones.
    if (request.so_far >= request.total) replies.push_back({rank, "cmd=spawn_result rc=-1 status=not_supported\n"});
    return true;
}

void pmi1_job::leave(int rank) {
    auto const index = static_cast<std::size_t>(rank);
    spawns_[index] = {};
    if (!waiting_[index]) return;
    waiting_[index] = false;
    --waiting_count_;
}

}  // namespace muster::pmix
