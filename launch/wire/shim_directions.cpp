#include "launch/wire/shim_directions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/process/network.hpp"
#include "base/throw_error.hpp"
#include "launch/wire/run_key.hpp"

namespace muster {

namespace {

constexpr std::string_view file_mark = "file:";

/// Returns nothing if the key goes into the environment; `why` then says so.
std::string folder_for_key(shim_directions_request const& request, std::string& why) {
    if (request.pass_key == key_way::environment) {
        why = "--pass-key environment";
        return {};
    }
    auto folder = key_folder(request.variables);
    if (request.pass_key == key_way::file) {
        if (folder.empty()) throw error(errc::usage, "--pass-key file needs a home: HOME is no absolute path; set it");
        return folder;
    }
    if (request.engine == "remote") {
        why = "muster hands it to its own agents only, over connections that are encrypted";
        return {};
    }
    if (request.engine == "srun") {
        why = "Slurm hands it to its own daemons only";
        return {};
    }
    auto const& needed = request.needed;
    bool const shared =
        !folder.empty() && std::ranges::any_of(needed, [&](auto const& path) { return is_shared_with_nodes(folder, path); });
    if (shared) return folder;
    why = fmt::format("{} is not known to be on the nodes, too; if it is, --pass-key file keeps the key out of {}'s hands",
                      folder.empty() ? "the home folder" : folder, request.engine);
    return {};
}

}  // namespace

key_way parse_key_way(std::string_view text) {
    if (text == "auto") return key_way::automatic;
    if (text == "file") return key_way::file;
    if (text == "munge") return key_way::munge;
    if (text == "environment") return key_way::environment;
    throw_error(errc::usage, "--pass-key {} is unknown; use auto, munge, file or environment", text);
}

shim_directions::shim_directions(run_key const& key, int port, shim_directions_request const& request) {
    list_addresses(port, request);
    pass_key(key, request);
}

void shim_directions::list_addresses(int port, shim_directions_request const& request) {
    // A login node's interfaces may have other names than those of the ranks' nodes, which look for it themselves.
    bool const chosen = !request.interface.empty() && has_interface(request.interface);
    auto own = chosen ? addresses_of(request.interface) : own_addresses();
    if (!chosen && !request.interface.empty())
        notes_.push_back(
            fmt::format("there is no interface {} here, so shims get all addresses of this machine", request.interface));
    if (!chosen) take_unique(own);
    if (own.size() > 1 && !chosen && !request.other_node.empty())
        if (auto const towards = interface_towards(request.other_node); !towards.empty())
            std::stable_partition(own.begin(), own.end(), [&](auto const& one) { return one.interface == towards; });
    std::vector<std::string> list;
    for (auto const& one : own) list.push_back(with_port(one.address, port));
    if (list.empty()) list.push_back(with_port("127.0.0.1", port));  // a machine without a network
    notes_.push_back(fmt::format("shims connect to {}, in this order", fmt::join(list, ", ")));
    variables_.emplace_back("MUSTER_LAUNCHER", fmt::format("{}", fmt::join(list, ",")));
}

/// Leaves out addresses that other machines have as well, unless no address is left: a node that uses such an address may reach
/// itself.
void shim_directions::take_unique(std::vector<interface_address>& own) {
    auto const first_common = std::stable_partition(
        own.begin(), own.end(), [](auto const& one) { return why_not_unique(one.interface, one.address).empty(); });
    if (first_common == own.begin()) return;
    for (auto one = first_common; one != own.end(); ++one)
        notes_.push_back(fmt::format("shims are not told of {} on {}: {}", one->address, one->interface,
                                     why_not_unique(one->interface, one->address)));
    own.erase(first_common, own.end());
}

/// Returns nothing if munge is not used; a note says why, if it might have been.
std::string shim_directions::seal(run_key const& key, shim_directions_request const& request) {
    bool const asked = request.pass_key == key_way::munge;
    bool const usual = request.pass_key == key_way::automatic && request.munge_socket && request.engine != "remote";
    if (!asked && !usual) return {};
    try {
        return seal_by_munge(key, request.munge_socket.value_or(""));
    } catch (error const& e) {
        if (asked) throw;
        notes_.push_back(e.what());
        // Somebody may keep munged busy; srun itself would fail soon without it.
        if (request.engine != "srun") warning_ = fmt::format("{}; trying another way than munge", e.what());
        return {};
    }
}

void shim_directions::pass_key(run_key const& key, shim_directions_request const& request) {
    if (auto const sealed = seal(key, request); !sealed.empty()) {
        notes_.push_back(fmt::format("shims get the key of this run from {}, sealed by munge for this user", request.engine));
        variables_.emplace_back("MUSTER_TOKEN", sealed);
        return;
    }
    std::string why;
    if (auto const folder = folder_for_key(request, why); !folder.empty()) try {
            file_ = std::make_unique<key_file>(folder, key);
            notes_.push_back(fmt::format("shims read the key of this run from {}", file_->path()));
            variables_.emplace_back("MUSTER_TOKEN", std::string(file_mark) + file_->path());
            return;
        } catch (error const& e) {
            if (request.pass_key == key_way::file) throw;
            why = e.what();
        }
    notes_.push_back(fmt::format("shims get the key of this run in the environment, by {}: {}", request.engine, why));
    variables_.emplace_back("MUSTER_TOKEN", to_text(key));
}

run_key take_key(std::string const& token) {
    if (token.starts_with(munge_mark)) return open_by_munge(token);
    if (!token.starts_with(file_mark)) return parse_run_key(token);
    return read_key_file(token.substr(file_mark.size()));
}

}  // namespace muster
