// The sections of a site file: reads each of them by its schema.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobscripts/quote.hpp"
#include "launch/settings/toml_reader.hpp"
#include "launch/site/site.hpp"

namespace muster {

/// All of these throw toml_fault as toml_reader does.

/// The optional text of `key`, fit for a directive.
std::string directive_of(toml_reader const& in, std::string_view key, directive_text kind);

site_node read_site_node(toml_document const& document, toml::table const& table);
site_header read_site_header(toml_document const& document, toml::table const& table, script_kind scheduler);
site_queue read_site_queue(toml_document const& document, toml::table const& table, std::vector<site_queue> const& before,
                           script_kind scheduler);

}  // namespace muster
