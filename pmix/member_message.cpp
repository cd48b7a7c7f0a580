#include "pmix/member_message.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/codec/codec.hpp"
#include "base/throw_error.hpp"

namespace muster::elastic {

namespace {

/// Grows with each change of a message.
constexpr std::string_view version = "/2";

/// People read it on one line.
void make_one_line(std::string& text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
}

bool are_numbers(std::vector<int> const& all) {
    return std::all_of(all.begin(), all.end(), [](int each) { return each >= 0; });
}

bool is_port(int number) {
    return number >= 0 && number <= 65535;
}

// Each returns whether a rank or a launcher can have sent the message, and makes each of its texts one line.

bool is_possible(hello& m) {
    make_one_line(m.address);
    return m.address.find(';') == std::string::npos;  // which separates addresses elsewhere
}
bool is_possible(announce&) {
    return true;
}
bool is_possible(reform& m) {
    return m.after >= 0 && is_port(m.port);
}
bool is_possible(lost& m) {
    make_one_line(m.why);
    return m.generation >= 0 && are_numbers(m.ranks);
}
bool is_possible(generation& m) {
    auto& who = m.who;
    who.from = identity::source::muster;
    for (auto* const text : {&who.nspace, &who.host, &m.master}) make_one_line(*text);
    for (auto& each : m.addresses) make_one_line(each);
    return m.number >= 0 && !who.nspace.empty() && who.rank >= -1 && who.rank < who.world_size && who.local_rank >= 0 &&
           who.local_rank < who.local_size && who.node_rank >= 0 && who.node_rank < who.node_count && are_numbers(m.members) &&
           who.world_size > 0 && m.members.size() == static_cast<std::size_t>(who.world_size) && is_port(m.master_port) &&
           (m.addresses.empty() || m.addresses.size() == m.members.size());
}
bool is_possible(hosts_changed&) {
    return true;
}

}  // namespace

std::string events_value(int descriptor) {
    return fmt::format("{}{}", descriptor, version);
}

int events_descriptor(std::string_view value) noexcept {
    if (!value.ends_with(version)) return -1;
    value.remove_suffix(version.size());
    int descriptor = -1;
    auto const [rest, fault] = std::from_chars(value.data(), value.data() + value.size(), descriptor);
    return fault == std::errc() && rest == value.data() + value.size() && descriptor >= 0 ? descriptor : -1;
}

std::string encode(message const& what) {
    return codec::encode(what);
}

message decode(std::string_view bytes) try {
    codec::reader from(bytes.substr(0, longest_bytes));
    message what;
    from >> what;
    from.end();
    if (!std::visit([](auto& m) { return is_possible(m); }, what)) throw error(errc::parse, "its values contradict each other");
    return what;
} catch (error const& problem) {
    throw_error(errc::parse, "a message of {} bytes between a rank and its launcher cannot be read: {}", bytes.size(),
                problem.what());
}

}  // namespace muster::elastic
