// The remote starter's second half: rank 0's standard input, and what the MPI servers of hosts tell each other.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "launch/remote/remote_starter.hpp"
#include "pmix/server/server_job.hpp"

namespace muster {

/// The parts of all hosts that take part, one behind the other, go to each of them.
void remote_starter::on_message(std::size_t, wire::exchange const& exchange) {
    auto& gathered = exchanges_[exchange.name];
    if (gathered.parts == 0 && !exchange.nodes.empty())
        gathered.nodes = parse_numbers(exchange.nodes, "the nodes of an exchange");
    gathered.data += exchange.data;
    if (++gathered.parts < (gathered.nodes.empty() ? hosts_.size() : gathered.nodes.size())) return;
    auto const nodes = std::move(gathered.nodes);
    auto const all =
        std::make_shared<std::string const>(wire::encode(wire::exchange{exchange.name, {}, std::move(gathered.data)}));
    exchanges_.erase(exchange.name);  // the next one of this name may come at once
    auto const send_to = [&](std::size_t which) {
        if (which < hosts_.size() && hosts_[which].link) hosts_[which].link->send(all);
    };
    for (int const node : nodes) send_to(static_cast<std::size_t>(node));
    if (nodes.empty())
        for (std::size_t i = 0; i < hosts_.size(); ++i) send_to(i);
}

void remote_starter::on_message(std::size_t which, wire::modex const& modex) {
    auto const to = static_cast<std::size_t>(modex.node);
    if (to < hosts_.size() && hosts_[to].now == host::state::there) {
        auto passed_on = modex;
        passed_on.node = static_cast<int>(which);
        hosts_[to].link->send(wire::encode(passed_on));
    } else if (modex.rank >= 0) {  // a question
        hosts_[which].link->send(wire::encode(wire::modex{modex.node, modex.number, -1, pmix::modex_not_found, {}}));
    }
}

/// A file cannot be waited for, and need not be.
void remote_starter::watch_input() {
    struct stat found {};
    bool const waits = ::fstat(STDIN_FILENO, &found) == 0 && (S_ISFIFO(found.st_mode) || S_ISSOCK(found.st_mode));
    if (waits)
        loop_.watch_readable(STDIN_FILENO, [this] { read_input(); });
    else
        loop_.after(duration(0), [this] { read_input(); });
}

/// One block on the way at a time.
void remote_starter::read_input() {
    std::array<char, 64 << 10> block;
    auto const n = ::read(STDIN_FILENO, block.data(), block.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    loop_.unwatch(STDIN_FILENO);
    auto& link = hosts_[input_host_].link;
    input_ended_ = n <= 0;
    link->send(wire::encode(wire::input{n > 0 ? std::string(block.data(), static_cast<std::size_t>(n)) : std::string()}));
}

void remote_starter::on_message(std::size_t, wire::taken const&) {
    if (!input_ended_) watch_input();
}

}  // namespace muster
