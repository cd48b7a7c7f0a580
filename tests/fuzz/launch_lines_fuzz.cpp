// links: muster::launch
// iterations: 20000
// Any bytes as a rank's output, cut anywhere: what comes out is what went in, and untagged lines end in a newline.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "launch/ranks/rank_stream.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    muster::line_splitter plain;
    muster::line_splitter tagged(muster::line_format{.tag = "[h:0] "});
    std::string out;
    std::string untagged;
    for (std::size_t at = 0; at < size;) {
        std::size_t const n = std::min<std::size_t>(1 + data[at] % 17, size - at);
        out += plain.push(text.substr(at, n));
        if (!out.empty() && out.back() != '\n') __builtin_trap();
        untagged += tagged.push(text.substr(at, n));
        at += n;
    }
    out += plain.finish();
    untagged += tagged.finish();
    if (out != text) __builtin_trap();
    std::string stripped;
    for (std::size_t at = 0; at < untagged.size();) {
        if (untagged.compare(at, 6, "[h:0] ") != 0) __builtin_trap();
        auto const end = untagged.find('\n', at);
        if (end == std::string::npos) __builtin_trap();
        stripped += untagged.substr(at + 6, end - at - 5);
        at = end + 1;
    }
    if (!text.empty() && text.back() != '\n') stripped.pop_back();
    if (stripped != text) __builtin_trap();
    plain.tail(data == nullptr || size == 0 ? 1 : data[0]);
    return 0;
}
