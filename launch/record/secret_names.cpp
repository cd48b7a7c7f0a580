#include "launch/record/secret_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace muster {

namespace {

constexpr std::array telling_parts{"SECRET",     "PASSWORD",    "PASSWD",     "PASSPHRASE", "API_KEY",    "APIKEY",
                                   "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL", "COOKIE",     "LICENSE_KEY"};
constexpr std::array telling_ends{"_KEY", "_PASS", "_PWD", "_PW", "_AUTH"};

std::string upper(std::string_view text) {
    std::string all(text);
    std::transform(all.begin(), all.end(), all.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return all;
}

/// "https://user:password@host/", "https://TOKEN@host/": something before an @ that comes before the next slash. A user's name alone is no
/// secret where ssh logs in with it: "ssh://git@host/".
bool holds_url_secret(std::string_view value) {
    for (auto at = value.find("://"); at != std::string_view::npos; at = value.find("://", at + 3)) {
        auto const rest = value.substr(at + 3);
        auto const host = rest.substr(0, rest.find_first_of("/ \t\n"));
        auto const sign = host.find('@');
        if (sign == std::string_view::npos || sign == 0) continue;
        auto const scheme = value.substr(0, at);
        bool const is_login = scheme.ends_with("ssh") || scheme.ends_with("sftp");
        if (!is_login || host.substr(0, sign).find(':') != std::string_view::npos) return true;
    }
    return false;
}

}  // namespace

bool may_be_secret(std::string_view name, std::string_view value) {
    auto const known = upper(name);
    if (known.starts_with("AWS_") && known != "AWS_REGION" && known != "AWS_DEFAULT_REGION") return true;
    // As a whole word: not in TOKENIZERS_PARALLELISM.
    for (auto const word : split(known, '_'))
        if (word == "TOKEN" || word == "TOKENS" || word.ends_with("TOKEN")) return true;
    if (std::any_of(telling_parts.begin(), telling_parts.end(), [&](auto part) { return known.find(part) != std::string::npos; }))
        return true;
    if (std::any_of(telling_ends.begin(), telling_ends.end(), [&](auto end) { return known.ends_with(end); })) return true;
    return holds_url_secret(value);
}

std::vector<std::string> leave_out_secrets(environment& variables) {
    std::vector<std::string> names;
    for (auto const& [name, value] : variables)
        if (may_be_secret(name, value)) names.push_back(name);
    for (auto const& name : names) variables.unset(name);
    return names;
}

std::string without_secret(std::string const& assignment) {
    auto const equals = assignment.find('=');
    if (equals == std::string::npos || !may_be_secret(assignment.substr(0, equals), assignment.substr(equals + 1)))
        return assignment;
    return assignment.substr(0, equals);
}

}  // namespace muster
