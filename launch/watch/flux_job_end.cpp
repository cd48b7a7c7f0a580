#include "launch/watch/flux_job_end.hpp"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"

namespace muster {

namespace {

using nlohmann::json;

/// The log is written some 0.05 s behind the signals.
constexpr std::array pauses{timespec{0, 0}, timespec{0, 100'000'000}, timespec{0, 200'000'000}};

/// The types of RFC 21 that end a job from outside; "exec" is a fault of the job's own.
job_end end_of_exception(std::string const& type) {
    if (type == "timeout") return job_end::out_of_time;
    if (type == "cancel") return job_end::cancelled;
    if (type == "node-failure") return job_end::node_failed;
    if (type == "preempt") return job_end::preempted;
    return job_end::unknown;
}

}  // namespace

job_end parse_flux_events(std::string_view events) {
    auto found = job_end::unknown;
    for (auto const line : split(events, '\n')) {
        auto const event = parse_json_or_discard<json>(line);
        if (!event.is_object()) continue;
        found = job_end::going_on;
        try {
            if (event.value("name", "") != "exception") continue;
            auto const context = event.value("context", json::object());
            if (context.value("severity", 7) == 0) return end_of_exception(context.value("type", ""));
        } catch (json::exception const&) {  // no event of a job's
        }
    }
    return found;
}

job_end ask_flux_job_end(allocation const& given, environment const& variables, std::chrono::milliseconds patience) {
    if (given.job_id.empty()) return job_end::unknown;
    std::vector<std::string> question{"flux", "job", "eventlog", "--format=json", given.job_id};
    if (!variables.has("FLUX_JOB_ID")) question.insert(question.begin() + 1, "--parent");
    auto end = job_end::unknown;
    for (auto const pause : pauses) {
        ::nanosleep(&pause, nullptr);
        auto const answer = run_captured(question, variables, patience);
        end = answer.exit_status == 0 ? parse_flux_events(answer.out) : job_end::unknown;
        if (end != job_end::going_on) break;
    }
    return end;
}

std::vector<std::string> parse_flux_hosts(std::string_view printed) {
    std::vector<std::string> hosts;
    for (auto const line : split(printed, '\n')) try {
            for (auto& host : expand_hostlist(trim(line), "flux resource status")) hosts.push_back(std::move(host));
        } catch (error const&) {  // a warning
        }
    return hosts;
}

std::vector<std::string> ask_flux_down_nodes(environment const& variables, std::chrono::milliseconds patience) {
    return parse_flux_hosts(run_captured({"flux", "resource", "status", "--states=offline", "--no-header", "--format={nodelist}"},
                                         variables, patience)
                                .out);
}

}  // namespace muster
