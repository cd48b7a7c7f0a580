// forged_orders COMMAND..: writes what a launcher orders a shim to do, so that rank 0 of 1 runs COMMAND: two frames as they are on the wire before a key is proved,
// `job` and `go`. A shim that asks for no proof obeys them (wire_attack.py).
#include <cstdio>
#include <string>
#include <vector>

#include "launch/wire/frame_channel.hpp"
#include "launch/wire/messages.hpp"

int main(int count, char** words) {
    using namespace muster;
    wire::job job;
    job.who.nspace = "muster.forged.1";
    job.who.host = "node";
    job.who.from = identity::source::muster;
    job.command.assign(words + 1, words + count);
    job.working_dir = "/";
    job.variables = environment{{{"PATH", "/usr/bin:/bin"}}};
    job.address = "node";
    for (wire::message const& order : std::vector<wire::message>{job, wire::go{"10.77.0.2", 20001, 20002, {}}}) {
        auto const frame = with_frame_header(wire::encode(order));
        if (std::fwrite(frame.data(), 1, frame.size(), stdout) != frame.size()) return 1;
    }
}
