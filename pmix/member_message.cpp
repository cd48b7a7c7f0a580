#include "pmix/member_message.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>

#include "base/error.hpp"
#include "base/field_count.hpp"
#include "base/text.hpp"

namespace muster::elastic {

namespace {

constexpr std::size_t most_members = std::size_t{1} << 16;

// A message is its name and its fields, a line each.

std::string line_of(std::string text) {
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    return text;
}

class writer {
  public:
    explicit writer(std::string_view name) : text_(name) {}
    writer& operator<<(std::string const& value) {
        text_ += '\n';
        text_ += line_of(value);
        return *this;
    }
    writer& operator<<(int value) { return *this << std::to_string(value); }
    writer& operator<<(std::vector<int> const& values) { return *this << fmt::format("{}", fmt::join(values, ",")); }
    writer& operator<<(std::vector<std::string> const& values) { return *this << fmt::format("{}", fmt::join(values, ";")); }
    std::string text() { return std::move(text_); }

  private:
    std::string text_;
};

class reader {
  public:
    explicit reader(std::string_view text) : lines_(split(text, '\n')) {}

    std::string_view next() {
        if (at_ == lines_.size()) refuse("it ends too early");
        return lines_[at_++];
    }
    std::string text() { return line_of(std::string(next())); }
    int number(int least, int most = INT_MAX) { return number_in(next(), least, most); }
    bool flag() { return number(0, 1) == 1; }
    std::vector<int> numbers() {
        std::vector<int> all;
        auto const line = next();
        if (line.empty()) return all;
        for (auto const one : split(line, ',')) {
            if (all.size() == most_members) refuse("too many numbers");
            all.push_back(number_in(one, 0, INT_MAX));
        }
        return all;
    }
    std::vector<std::string> texts() {
        std::vector<std::string> all;
        auto const line = text();
        if (line.empty()) return all;
        for (auto const one : split(line, ';')) all.emplace_back(one);
        return all;
    }
    template <typename Message>
    Message end(Message what) {
        if (at_ != lines_.size()) refuse("it goes on where it should end");
        return what;
    }
    [[noreturn]] void refuse(std::string_view why) const {
        throw error(errc::parse, fmt::format("message \"{}\" between a rank and its launcher: {}",
                                             without_controls(lines_.front().substr(0, 40)), why));
    }

  private:
    int number_in(std::string_view text, int least, int most) const {
        auto const value = parse_integer(text);
        if (!value || *value < least || *value > most) refuse("a number is wrong");
        return static_cast<int>(*value);
    }

    std::vector<std::string_view> lines_;
    std::size_t at_ = 0;
};

/// The encoder writes, and the readers read, this number of members.
static_assert(field_count<hello> == 1 && field_count<announce> == 0 && field_count<reform> == 4 && field_count<lost> == 3 &&
              field_count<generation> == 7 && field_count<identity> == 9 && field_count<hosts_changed> == 2);

struct encoder {
    std::string operator()(hello const& m) const { return (writer("hello") << m.address).text(); }
    std::string operator()(announce const&) const { return "announce"; }
    std::string operator()(reform const& m) const {
        return (writer("reform") << m.after << m.has_state << m.at_commit << m.port).text();
    }
    std::string operator()(lost const& m) const { return (writer("lost") << m.generation << m.ranks << m.why).text(); }
    std::string operator()(generation const& m) const {
        auto const& who = m.who;
        return (writer("generation") << m.number << who.nspace << who.host << who.rank << who.world_size << who.local_rank
                                     << who.local_size << who.node_rank << who.node_count << m.members << m.sync << m.master
                                     << m.master_port << m.addresses)
            .text();
    }
    std::string operator()(hosts_changed const& m) const { return (writer("hosts_changed") << m.added << m.removed).text(); }
};

lost read_lost(reader& from) {
    lost m;
    m.generation = from.number(0);
    m.ranks = from.numbers();
    m.why = from.text();
    return from.end(std::move(m));
}

generation read_generation(reader& from) {
    generation m;
    auto& who = m.who;
    m.number = from.number(0);
    who.nspace = from.text();
    who.host = from.text();
    who.from = identity::source::muster;
    who.rank = from.number(-1);
    who.world_size = from.number(1);
    who.local_rank = from.number(0);
    who.local_size = from.number(1);
    who.node_rank = from.number(0);
    who.node_count = from.number(1);
    m.members = from.numbers();
    m.sync = from.flag();
    m.master = from.text();
    m.master_port = from.number(0, 65535);
    m.addresses = from.texts();
    if (who.nspace.empty() || who.rank >= who.world_size || who.local_rank >= who.local_size || who.node_rank >= who.node_count ||
        m.members.size() != static_cast<std::size_t>(who.world_size) ||
        (!m.addresses.empty() && m.addresses.size() != m.members.size()))
        from.refuse("its numbers contradict each other");
    return from.end(std::move(m));
}

}  // namespace

std::string encode(message const& what) {
    return std::visit(encoder{}, what);
}

message decode(std::string_view text) {
    reader from(text.substr(0, longest_bytes));
    auto const name = from.next();
    if (name == "hello") {
        auto address = from.text();
        if (address.find(';') != std::string::npos) from.refuse("an address holds a semicolon");
        return from.end(hello{std::move(address)});
    }
    if (name == "announce") return from.end(announce{});
    if (name == "reform") {
        reform m;
        m.after = from.number(0);
        m.has_state = from.flag();
        m.at_commit = from.flag();
        m.port = from.number(0, 65535);
        return from.end(m);
    }
    if (name == "lost") return read_lost(from);
    if (name == "generation") return read_generation(from);
    if (name == "hosts_changed") {
        bool const added = from.flag();
        return from.end(hosts_changed{added, from.flag()});
    }
    from.refuse("there is no such message");
}

}  // namespace muster::elastic
