// Sources for the tests of io: opens one from a scratch folder, reads all of it, and tells what is refused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "io/sources/sample_source.hpp"
#include "test_files.hpp"

namespace muster::test {

struct contents {
    bytes images;
    std::vector<std::uint32_t> labels;
};

/// In two parts, as two ranks would.
inline contents read_all(sample_source& from) {
    source_facts const& facts = from.facts();
    std::size_t const size = facts.shape.elements() * bytes_of(facts.type);
    contents all{bytes(facts.samples * size), std::vector<std::uint32_t>(facts.samples)};
    std::size_t const half = facts.samples / 2;
    from.read({0, half}, std::span(all.images).first(half * size), std::span(all.labels).first(half));
    from.read({half, facts.samples - half}, std::span(all.images).subspan(half * size), std::span(all.labels).subspan(half));
    from.finish();
    return all;
}

class sources : public testing::Test {
  protected:
    std::string text(std::string const& name, std::string const& lines) {
        return dir.write(name, bytes(lines.begin(), lines.end()));
    }
    std::unique_ptr<sample_source> open(std::string const& path, source_options const& how = {}, std::string const& labels = "") {
        auto found = open_sources({"", path, labels}, how);
        EXPECT_EQ(found.size(), 1u);
        return std::move(found.front().source);
    }
    /// The message of what is thrown by opening and reading.
    std::string refused(std::string const& path, source_options const& how = {}, std::string const& labels = "") {
        try {
            for (named_source& each : open_sources({"", path, labels}, how)) read_all(*each.source);
        } catch (error const& e) {
            return e.what();
        }
        ADD_FAILURE() << path << " was read";
        return "";
    }
    scratch dir;
};

}  // namespace muster::test
