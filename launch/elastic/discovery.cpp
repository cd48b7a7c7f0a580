#include "launch/elastic/discovery.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <unordered_map>

#include "base/error.hpp"
#include "base/process/files.hpp"
#include "base/process/run_captured.hpp"
#include "base/text.hpp"
#include "base/trust/foreign_json.hpp"
#include "launch/scheduler/hosts/bracketed_address.hpp"
#include "launch/scheduler/hosts/hostlist.hpp"
#include "launch/system/end_processes.hpp"
#include "launch/system/signal_table.hpp"

namespace muster {

using nlohmann::ordered_json;

namespace {

constexpr std::chrono::milliseconds script_limit{30'000};
constexpr duration longest_end{1};
constexpr std::size_t most_output = 1u << 20;
constexpr int most_slots = 100'000;  ///< at most, for one host

bool is_executable_file(std::string const& path) {
    return path.find('/') != std::string::npos && ::access(path.c_str(), X_OK) == 0;
}

std::string describe_fault(command_output const& done) {
    auto const said = without_controls(trim(done.err));
    auto const last_line = said.substr(said.rfind('\n') + 1);
    auto const how = done.exit_status == 124   ? fmt::format("did not end within {} s", script_limit.count() / 1000)
                     : done.exit_status == 125 ? fmt::format("printed more than {} KiB", most_output / 1024)
                                               : fmt::format("ended with code {}", done.exit_status);
    return last_line.empty() || done.exit_status == 124 || done.exit_status == 125 ? how : fmt::format("{}: {}", how, last_line);
}

std::string text_of(discovery_answer const& answer) {
    auto hosts = ordered_json::array();
    for (auto const& one : answer.hosts) hosts.push_back({one.name, one.slots});
    return ordered_json{{"hosts", hosts}, {"fault", answer.fault}}.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<discovery_answer> answer_of(std::string_view line) {
    auto const row = parse_json_or_discard<ordered_json>(line);
    if (!row.is_object()) return std::nullopt;
    discovery_answer answer{.hosts = {}, .fault = row.at("fault").get<std::string>()};
    for (auto const& one : row.at("hosts")) answer.hosts.push_back({one.at(0).get<std::string>(), one.at(1).get<int>()});
    return answer;
}

/// Runs in the child process until it ends.
[[noreturn]] void ask_for_ever(discovery_script const& script, environment const& variables, duration pause, int answers) {
    std::string last;
    for (;;) {
        auto const answer = text_of(ask_hosts(script, variables)) + "\n";
        try {
            if (answer != last) write_all(answers, answer, "the launcher");
        } catch (error const&) {
            ::_exit(1);  // the launcher is gone
        }
        last = answer;
        std::this_thread::sleep_for(pause);
    }
}

}  // namespace

std::string discovery_answer::fault_with(std::string_view advice) const {
    return std::string(fault).insert(std::min(fault.find('\n'), fault.size()), advice);
}

std::vector<pool_host> parse_discovered(std::string_view text, int slots) {
    std::vector<pool_host> hosts;
    std::unordered_map<std::string, std::size_t> places;
    for (auto const line : split(text, '\n')) {
        auto const word = trim(line);
        if (word.empty()) continue;
        auto const ip = split_bracketed(word);
        auto const rest = ip ? ip->rest : word.substr(std::min(word.find(':'), word.size()));
        std::string_view const name = ip ? std::string_view(ip->address) : word.substr(0, word.size() - rest.size());
        auto const fail = [&](std::string_view part, std::string_view why) {
            throw parse_error("printed a wrong line", text, static_cast<std::size_t>(part.data() - text.data()), why,
                              errc::invalid_data);
        };
        if (!ip && looks_like_ipv6(word)) fail(word, bracket_ipv6);
        if (auto const fault = ip ? std::nullopt : check_host_name(name))
            fail(word.substr(fault->offset), fmt::format("{}; print HOST or HOST:SLOTS", fault->message));
        pool_host one{std::string(name), slots};
        if (!rest.empty()) {
            auto const count = rest.front() == ':' ? parse_integer(rest.substr(1)) : std::nullopt;
            if (!count || *count < 0 || *count > most_slots)
                fail(rest.substr(rest.front() == ':' ? 1 : 0), "no number of slots; print HOST or HOST:SLOTS");
            one.slots = static_cast<int>(*count);
        }
        if (one.slots == 0) continue;
        auto const [known, is_new] = places.try_emplace(one.name, hosts.size());
        if (is_new)
            hosts.push_back(std::move(one));
        else
            hosts[known->second].slots = std::max(hosts[known->second].slots, one.slots);
        if (hosts.size() > max_hosts) fail(word, "too many hosts");
    }
    return hosts;
}

discovery_answer ask_hosts(discovery_script const& script, environment const& variables) {
    auto const words = is_executable_file(script.command) ? std::vector<std::string>{script.command}
                                                          : std::vector<std::string>{"/bin/sh", "-c", script.command};
    try {
        auto const done = run_program(words, variables, {.limit = script_limit, .output_limit = most_output});
        if (done.exit_status != 0) return {.hosts = {}, .fault = describe_fault(done)};
        return {.hosts = parse_discovered(done.out, script.slots), .fault = {}};
    } catch (std::exception const& e) {
        return {.hosts = {}, .fault = e.what()};
    }
}

discovery::discovery(discovery_script const& script, environment const& variables, duration pause) {
    auto [read_end, write_end] = make_pipe();
    pid_t const parent = ::getpid();
    child_ = ::fork();
    if (child_ < 0) throw_system("fork", "for --host-discovery-script", errno, "raise the limit of processes with ulimit -u");
    if (child_ == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);
        for (int const s : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(s, SIG_DFL);
        ignore_signals(process_kind::discovery);
        sigset_t none;
        sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        read_end.reset();
        ask_for_ever(script, variables, pause, write_end.get());
    }
    ::setpgid(child_, child_);
    answers_ = std::move(read_end);
    ::fcntl(answers_.get(), F_SETFL, O_NONBLOCK);
}

void discovery::watch(event_loop& loop, std::function<void(discovery_answer const&)> take) {
    if (child_ < 0) return;
    loop_ = &loop;
    loop.watch_readable(answers_.get(), [this, take = std::move(take)] { read(take); });
}

void discovery::read(std::function<void(discovery_answer const&)> const& take) {
    std::array<char, 65536> buffer;
    ssize_t n = 0;
    while ((n = ::read(answers_.get(), buffer.data(), buffer.size())) > 0)
        received_.append(buffer.data(), static_cast<std::size_t>(n));
    for (auto end = received_.find('\n'); end != std::string::npos; end = received_.find('\n')) {
        auto const answer = answer_of(received_.substr(0, end));
        received_.erase(0, end + 1);
        if (answer) take(*answer);
    }
    if (n == 0) {
        stop();
        take({.hosts = {}, .fault = "its process was killed: hosts that come and go are seen no more", .is_last = true});
    }
}

void discovery::stop() noexcept {
    if (child_ < 0) return;
    if (loop_ != nullptr) loop_->unwatch(answers_.get());
    ::kill(-child_, SIGKILL);
    ::kill(child_, SIGKILL);
    reap_within(child_, longest_end);  // a process that waits for a file system may stay
    child_ = -1;
    answers_.reset();
}

}  // namespace muster
