// The state of a PMI-1 job: its keys and values, its barrier, its published names. Answers lines; knows no sockets.
#pragma once

#include <map>
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

    /// What a client is told that asks for its place ("cmd=initack").
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

    std::string name_;
    int world_size_;
    std::map<std::string, std::string, std::less<>> values_;
    std::map<std::string, std::string, std::less<>> services_;
    std::size_t bytes_ = 0;
    std::vector<bool> waiting_;
    int waiting_count_ = 0;
    std::vector<spawn_request> spawns_;
};

}  // namespace muster::pmix
