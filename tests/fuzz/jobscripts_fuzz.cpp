// links: muster::jobs
// iterations: 2000
// Any bytes as the values of a script: refused, or in the script without starting a line of their own.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "jobscripts/quote.hpp"
#include "jobscripts/render.hpp"

namespace {

/// What bash makes of a word that bash_quote wrote; a reader of its own, so that both must be wrong in the same way to go unseen.
std::string unquote(std::string_view word) {
    std::string value;
    bool const dollar = word.starts_with("$'");
    for (std::size_t i = dollar ? 2 : 0; i < word.size();) {
        char const c = word[i];
        if (dollar && c == '\\') {
            char const next = word[i + 1];
            if (next == 'n') value += '\n';
            if (next == '\'' || next == '\\') value += next;
            if (next >= '0' && next <= '3') {
                value += static_cast<char>((next - '0') * 64 + (word[i + 2] - '0') * 8 + (word[i + 3] - '0'));
                i += 2;
            }
            i += 2;
        } else if (dollar) {
            if (c != '\'') value += c;
            ++i;
        } else if (c == '\'') {
            auto const end = word.find('\'', i + 1);
            value += word.substr(i + 1, end - i - 1);
            i = end + 1;
        } else if (c == '\\') {
            value += word[i + 1];
            i += 2;
        } else {
            value += c;
            ++i;
        }
    }
    return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    // Pieces divided by 0xfe: the first ones are values of directives, the others words of the command.
    std::vector<std::string> pieces;
    for (auto const piece : muster::split(text, '\xfe')) pieces.emplace_back(piece);
    muster::script_request request;
    request.kind = static_cast<muster::script_kind>(size % 4);
    request.walltime = muster::duration(60);
    request.command = {"x"};
    request.artifacts.folder = "out";
    request.stage_in = {{"a", "b"}};
    request.venv = "v";
    request.container.image = "i";
    auto const plain = muster::render(request);
    auto const lines = muster::split(plain, '\n').size();
    if (pieces.size() > 4) {
        request.account = pieces[0];
        request.queue = pieces[1];
        request.job_name = pieces[2];
        request.constraint = pieces[3];
    }
    if (pieces.size() > 8) {
        request.artifacts.folder = pieces[4] + "%j" + pieces[5];
        request.stage_in = {{pieces[6], pieces[7]}};
        request.venv = pieces[4] + "v";
        request.container.image = pieces[5] + "i";
        request.conda = request.container.image;
    }
    request.command.assign(pieces.begin() + (pieces.size() > 4 ? 4 : 0), pieces.end());
    try {
        for (auto const& word : request.command)
            if (unquote(muster::bash_quote(word)) != word) __builtin_trap();
        auto const script = muster::render(request);
        if (muster::split(script, '\n').size() > lines + 4) __builtin_trap();  // account, queue, constraint, conda
        if (std::any_of(script.begin(), script.end(), [](char c) { return c != '\n' && static_cast<unsigned char>(c) < 0x20; }))
            __builtin_trap();
    } catch (muster::error const& e) {
        if (muster::exit_code(e.code()) != 2) __builtin_trap();
    }
    return 0;
}
