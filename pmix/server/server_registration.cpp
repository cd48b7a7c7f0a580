// The job's description, as PMIx keys.
#include <hwloc.h>
#include <sched.h>
#include <string.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.hpp"
#include "pmix/server/server_core.hpp"

namespace muster::pmix {

std::vector<job_node> nodes_of(job const& description) {
    if (!description.nodes.empty()) return description.nodes;
    std::vector<int> all(static_cast<std::size_t>(description.world_size < 0 ? 0 : description.world_size));
    std::iota(all.begin(), all.end(), 0);
    return {{description.host, all}};
}

std::vector<int> local_ranks_of(job const& description) {
    return nodes_of(description).at(static_cast<std::size_t>(description.node)).ranks;
}

int local_size_of(job const& description) noexcept {
    if (description.nodes.empty()) return description.world_size;
    return static_cast<int>(description.nodes[static_cast<std::size_t>(description.node)].ranks.size());
}

int local_rank_of(job const& description, int rank) noexcept {
    if (description.nodes.empty()) return rank;
    auto const& here = description.nodes[static_cast<std::size_t>(description.node)].ranks;
    return static_cast<int>(std::find(here.begin(), here.end(), rank) - here.begin());
}

namespace {

struct free_deleter {
    void operator()(char* text) const noexcept { std::free(text); }
};
using c_string = std::unique_ptr<char, free_deleter>;

std::string rank_list(std::vector<int> const& ranks) {
    std::string list;
    for (int const rank : ranks) list += (list.empty() ? "" : ",") + std::to_string(rank);
    return list;
}

/// Says where a rank is.
struct place {
    int node = 0;
    int local_rank = 0;
};

std::vector<place> places_of(std::vector<job_node> const& nodes, int world_size) {
    std::vector<place> places(static_cast<std::size_t>(world_size));
    for (std::size_t n = 0; n < nodes.size(); ++n)
        for (std::size_t i = 0; i < nodes[n].ranks.size(); ++i)
            places.at(static_cast<std::size_t>(nodes[n].ranks[i])) = {static_cast<int>(n), static_cast<int>(i)};
    return places;
}

struct bitmap_deleter {
    void operator()(hwloc_bitmap_s* bitmap) const noexcept { hwloc_bitmap_free(bitmap); }
};
using bitmap = std::unique_ptr<hwloc_bitmap_s, bitmap_deleter>;

bitmap parse_cpuset(std::string const& text) {
    bitmap set(hwloc_bitmap_alloc());
    if (!set || hwloc_bitmap_list_sscanf(set.get(), text.c_str()) != 0)
        throw error(errc::usage, "\"" + text + "\" is no list of processors, as in 0-3,8");
    return set;
}

/// "SK0:L30:L20:CR0:HT0" and so on: from the strings of two ranks MPI sees which caches they share. "" where unknown.
std::string locality_of(std::string const& cpuset) {
    auto const bits = parse_cpuset(cpuset);
    pmix_cpuset_t set;
    char source[] = "hwloc";
    set.source = source;
    set.bitmap = bits.get();
    char* text = nullptr;
    if (PMIx_server_generate_locality_string(&set, &text) != PMIX_SUCCESS || text == nullptr) return {};
    c_string const owned(text);
    return text;
}

info_list describe_rank(job const& description, int rank, place where, std::string const& host,
                        std::map<std::string, std::string>& localities) {
    info_list keys;
    keys.reserve(12);
    keys.add_rank(PMIX_RANK, static_cast<pmix_rank_t>(rank));  // must come first
    keys.add_u16(PMIX_LOCAL_RANK, static_cast<std::uint16_t>(where.local_rank));
    keys.add_u16(PMIX_NODE_RANK, static_cast<std::uint16_t>(where.local_rank));
    keys.add_u32(PMIX_NODEID, static_cast<std::uint32_t>(where.node));
    keys.add_rank(PMIX_GLOBAL_RANK, static_cast<pmix_rank_t>(rank));
    keys.add_rank(PMIX_APP_RANK, static_cast<pmix_rank_t>(rank));
    keys.add_u32(PMIX_APPNUM, 0);
    keys.add(PMIX_HOSTNAME, host);
    if (where.node != description.node) return keys;
    keys.add(PMIX_PROCDIR, description.session_dir + "/mpi/job/" + std::to_string(rank));
    auto const index = static_cast<std::size_t>(where.local_rank);
    if (index < description.cpusets.size() && !description.cpusets[index].empty()) {
        auto const& cpuset = description.cpusets[index];
        auto [found, fresh] = localities.try_emplace(cpuset);
        if (fresh) found->second = locality_of(cpuset);
        keys.add(PMIX_CPUSET, "hwloc:" + cpuset);
        if (!found->second.empty()) keys.add(PMIX_LOCALITY_STRING, found->second);
    }
    return keys;
}

}  // namespace

int count_processors(job const& description) {
    bitmap const all(hwloc_bitmap_alloc());
    for (std::size_t i = 0; i < description.cpusets.size(); ++i) {
        auto const& text = description.cpusets[i];
        if (text.empty() || (i > 0 && text == description.cpusets[i - 1])) continue;
        hwloc_bitmap_or(all.get(), all.get(), parse_cpuset(text).get());
    }
    if (int const bound = hwloc_bitmap_weight(all.get()); bound > 0) return bound;
    cpu_set_t own;
    // Fails on machines with more than 1024 processors: they are not oversubscribed by accident.
    return sched_getaffinity(0, sizeof own, &own) == 0 ? CPU_COUNT(&own) : 0;
}

/// libpmix copies a name up to its first digit to 50 bytes, without a look at its length (4.1 to 5.0, preg_native.c).
constexpr std::size_t longest_counted_name = 48;

/// `hosts`, divided by commas, as PMIX_NODE_MAP has them: an expression of libpmix's, or, with names that are too long for it, the list itself, which any
/// of its readers takes.
char* describe_hosts(std::string const& hosts, std::vector<job_node> const& nodes) {
    bool const fits =
        std::all_of(nodes.begin(), nodes.end(), [](job_node const& each) { return each.host.size() <= longest_counted_name; });
    if (!fits) return ::strdup(("raw:" + hosts).c_str());
    char* node_map = nullptr;
    check(PMIx_generate_regex(hosts.c_str(), &node_map), "PMIx_generate_regex");
    return node_map;
}

info_list describe_job(job const& description) {
    auto const size = static_cast<std::uint32_t>(description.world_size);
    auto const nodes = nodes_of(description);
    auto const& here = nodes.at(static_cast<std::size_t>(description.node));
    auto const local_size = static_cast<std::uint32_t>(here.ranks.size());
    std::string hosts;
    std::string ranks;
    for (auto const& node : nodes) {
        hosts += (hosts.empty() ? "" : ",") + node.host;
        ranks += (ranks.empty() ? "" : ";") + rank_list(node.ranks);
    }
    c_string const node_map(describe_hosts(hosts, nodes));
    char* rank_map = nullptr;
    check(PMIx_generate_ppn(ranks.c_str(), &rank_map), "PMIx_generate_ppn");
    c_string const owned_ranks(rank_map);

    info_list keys;
    keys.reserve(24 + size);
    keys.add_regex(PMIX_NODE_MAP, node_map.get());
    keys.add_regex(PMIX_PROC_MAP, rank_map);
    keys.add(PMIX_JOBID, description.nspace);
    keys.add_u32(PMIX_JOB_SIZE, size);
    keys.add_u32(PMIX_UNIV_SIZE, size);
    keys.add_u32(PMIX_MAX_PROCS, size);
    keys.add_u32(PMIX_LOCAL_SIZE, local_size);
    keys.add_u32(PMIX_NODE_SIZE, local_size);
    keys.add_u32(PMIX_NUM_NODES, static_cast<std::uint32_t>(nodes.size()));
    keys.add_u32(PMIX_NODEID, static_cast<std::uint32_t>(description.node));
    keys.add_u32(PMIX_JOB_NUM_APPS, 1);
    keys.add_u32(PMIX_APPNUM, 0);
    keys.add_u32(PMIX_APP_SIZE, size);
    keys.add_rank(PMIX_LOCALLDR, here.ranks.empty() ? 0 : static_cast<pmix_rank_t>(here.ranks.front()));
    keys.add_rank(PMIX_APPLDR, 0);
    keys.add(PMIX_HOSTNAME, here.host);
    keys.add(PMIX_LOCAL_PEERS, rank_list(here.ranks));
    // Open MPI asks for these folders to be emptied when one rank ends, so nothing that others need may lie in them.
    keys.add(PMIX_TMPDIR, description.session_dir + "/mpi");
    keys.add(PMIX_NSDIR, description.session_dir + "/mpi/job");
    keys.add(PMIX_PROCDIR, description.session_dir + "/mpi/job/rank");
    keys.add(PMIX_TDIR_RMCLEAN, true);  // the launcher removes the session's folder
    std::map<std::string, std::string> localities;
    auto const places = places_of(nodes, description.world_size);
    for (int rank = 0; rank < description.world_size; ++rank) {
        auto const where = places[static_cast<std::size_t>(rank)];
        keys.add_array(PMIX_PROC_DATA,
                       describe_rank(description, rank, where, nodes[static_cast<std::size_t>(where.node)].host, localities));
    }
    return keys;
}

}  // namespace muster::pmix
