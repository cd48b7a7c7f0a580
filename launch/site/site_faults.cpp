
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "launch/settings/toml_reader.hpp"
#include "launch/site/site.hpp"

namespace muster {

namespace {

constexpr int most_faults = 1000;

struct placed_fault {
    std::size_t line;
    std::size_t column;
    std::string text;
};

/// Finds fault after fault: it mends each in a copy of the tables and reads again.
class fault_finder {
  public:
    explicit fault_finder(toml_document document) : document_(std::move(document)) {}

    std::vector<placed_fault> find() {
        for (int round = 0; round < most_faults; ++round) {
            try {
                parse_site(document_);
                return found_;
            } catch (toml_fault const& e) {
                if (!follows(e)) found_.push_back({e.line(), e.column(), e.what()});
                mend(e);
            } catch (error const& e) {
                found_.push_back({0, 0, e.what()});
                return found_;
            }
        }
        return found_;
    }

  private:
    /// Returns whether the fault appears only because something that it names was wrong itself and has been removed.
    bool follows(toml_fault const& e) const {
        std::string const text = e.what();
        if (mended_scheduler_ && text.find("this site's scheduler is") != std::string::npos) return true;
        auto const keys = mended_.find(&e.table());
        return keys != mended_.end() && std::ranges::any_of(keys->second, [&](std::string const& key) {
                   return text.find(fmt::format("'{}'", key)) != std::string::npos;
               });
    }

    void mend(toml_fault const& e) {
        auto& table = const_cast<toml::table&>(e.table());  // belongs to document_
        auto const& key = e.key();
        bool const again = !mended_[&table].insert(key).second;
        if (&table == &document_.root && key == "scheduler") mended_scheduler_ = true;
        bool const is_wanted = !table.contains(key) || key == "name" || key == "scheduler" || key == "date" || key == "facts";
        if (again || !is_wanted)
            table.erase(key);
        else
            put_stand_in(table, key);
    }

    void put_stand_in(toml::table& table, std::string const& key) {
        if (key == "scheduler")
            table.insert_or_assign(key, "slurm");
        else if (key == "date")
            table.insert_or_assign(key, toml::date{2000, 1, 1});
        else if (key == "source")
            table.insert_or_assign(key, toml::table{{"facts", "x"}, {"date", toml::date{2000, 1, 1}}});
        else
            table.insert_or_assign(key, fmt::format("stand-in-{}", stand_ins_++));
    }

    toml_document document_;
    std::vector<placed_fault> found_;
    std::map<toml::table const*, std::set<std::string>> mended_;
    bool mended_scheduler_ = false;
    int stand_ins_ = 0;
};

}  // namespace

std::vector<std::string> site_faults(std::string_view text, std::string_view origin) {
    std::vector<placed_fault> found;
    try {
        found = fault_finder(toml_document::parse(text, origin)).find();
    } catch (error const& e) {
        return {e.what()};
    }
    std::ranges::stable_sort(
        found, [](auto const& a, auto const& b) { return std::pair(a.line, a.column) < std::pair(b.line, b.column); });
    std::vector<std::string> texts;
    for (auto& fault : found) texts.push_back(std::move(fault.text));
    return texts;
}

bool looks_like_site(std::string_view text) {
    constexpr std::array<std::string_view, 7> beginnings{"[source", "[node]",       "[header]",   "[[queue",
                                                         "[script", "[environment", "description"};
    for (auto const line : split(text, '\n')) {
        auto const words = trim(line);
        if (std::ranges::any_of(beginnings, [&](auto const& one) { return words.starts_with(one); })) return true;
    }
    return false;
}

}  // namespace muster
