// The state of a PMI-1 job: its keys and values, its barrier, its published names. Answers lines; knows no sockets.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pmix/pmi1/pmi1_wire.hpp"
#include "pmix/server/server_job.hpp"

namespace muster::pmix {

/// Text to send to a rank's connection.
struct pmi1_reply {
    int rank;
    std::string text;
    bool operator==(pmi1_reply const&) const = default;
};

/// Takes the lines of all ranks, one after the other, and returns the replies. Pure apart from its own state; not thread
/// safe.
class pmi1_job {
  public:
    pmi1_job(std::string name, int world_size);
    /// One of several jobs that are a world together, on this node. `mapping` tells which rank is on which node.
    pmi1_job(std::string name, int world_size, int local_size, std::string mapping);

    /// Returns, once all local ranks are at a barrier of several nodes, what they have put since the last one, to be given to the others.
    std::optional<std::string> take_part();
    /// The parts of all nodes have come: the local ranks go on.
    void finish_barrier(std::string_view parts, std::vector<pmi1_reply>& replies);

    /// The answer to a client that asks for its place ("cmd=initack").
    std::string greeting(int rank) const;

    /// One line of a rank. Replies and events are appended. False: that was no line of this protocol, or one that asks for too
    /// much; end the connection.
    bool take(int rank, std::string_view line, std::vector<pmi1_reply>& replies, std::vector<server_event>& events);

    /// The rank's connection ended: it waits for nothing any more.
    void leave(int rank);

    static constexpr std::size_t longest_name = 256;
    static constexpr std::size_t longest_key = 64;
    static constexpr std::size_t longest_value = 1024;
    static constexpr std::size_t most_bytes = std::size_t{256} << 20U;  ///< of all keys and values together

  private:
    struct spawn_request {
        bool open = false;
        int total = 1;
        int so_far = 1;
    };
    bool command(int rank, pmi1_message const& message, std::vector<pmi1_reply>& replies, std::vector<server_event>& events);
    bool spawn_line(int rank, std::string_view line, std::vector<pmi1_reply>& replies);
    std::string put(pmi1_message const& message);
    std::string get(pmi1_message const& message) const;
    std::string get_by_index(pmi1_message const& message) const;
    std::string publish(pmi1_message const& message);
    std::string unpublish(pmi1_message const& message);
    std::string lookup(pmi1_message const& message) const;
    void barrier(int rank, std::vector<pmi1_reply>& replies);
    void release(std::vector<pmi1_reply>& replies);

    std::string name_;
    int world_size_;
    int local_size_;
    bool alone_ = true;         ///< all ranks are here
    bool part_due_ = false;
    std::string fresh_;         ///< lines "key=value" since the last barrier
    std::map<std::string, std::string, std::less<>> values_;
    std::map<std::string, std::string, std::less<>> services_;
    std::size_t bytes_ = 0;
    std::vector<bool> waiting_;
    int waiting_count_ = 0;
    std::vector<spawn_request> spawns_;
};

/// PMI_process_mapping of ranks on these nodes: "(vector,(0,2,4))" is four ranks on each of two nodes, in order. Empty where it would be
/// longer than a value may be: ranks then compare the names of their hosts. Pure.
std::string pmi1_mapping(job const& description);

}  // namespace muster::pmix
