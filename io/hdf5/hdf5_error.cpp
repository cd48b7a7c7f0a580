#include <fmt/format.h>
#include <hdf5.h>

#include <array>

#include "io/hdf5/hdf5_check.hpp"

namespace muster {

namespace {

struct known_cause {
    std::string_view words;
    std::string_view hint;
};

constexpr std::array known_causes{
    known_cause{"unable to lock file",
                "another program may have it open for writing; on a file system without locks (Lustre, NFS, DVS) set "
                "HDF5_USE_FILE_LOCKING=FALSE in the environment of every rank"},
    known_cause{
        "file is already open for write",
        "if its writer died, `h5clear -s FILE` frees what it has (keep a copy); if no program has it open, the file system's "
        "locks may be wrong: set HDF5_USE_FILE_LOCKING=FALSE"},
    known_cause{"truncated file", "the copy is incomplete: copy or convert it again"},
    known_cause{"file signature not found", "this is no HDF5 file: make one with `muster-stage convert`"},
    known_cause{"bad object header version number", "the file is damaged: copy or convert it again"},
    known_cause{"wrong checksum", "the file is damaged: copy or convert it again"},
    known_cause{"No space left on device", "free some space, or write to another file system"},
    known_cause{"File exists", "remove it first, or give --force"},
};

std::string describe(std::string const& file, std::string const& object, std::vector<std::string> const& stack) {
    std::string text = file;
    if (!object.empty()) text += fmt::format(", {}", object);
    std::string_view hint;
    for (std::size_t i = 0; i < stack.size(); ++i) {
        // The innermost cause and the outermost two say most; the frames between are HDF5's internal calls.
        if (i == 0 || i + 2 >= stack.size()) text += fmt::format("{}{}", i == 0 ? ": " : " <- ", stack[i]);
        for (known_cause const& cause : known_causes)
            if (hint.empty() && stack[i].find(cause.words) != std::string::npos) hint = cause.hint;
    }
    if (stack.empty()) text += ": HDF5 gave no reason";
    if (!hint.empty()) text += fmt::format("; {}", hint);
    return text;
}

extern "C" herr_t collect_frame(unsigned, H5E_error2_t const* frame, void* collected) {
    try {
        char minor[128] = "";
        H5Eget_msg(frame->min_num, nullptr, minor, sizeof minor);
        static_cast<std::vector<std::string>*>(collected)->push_back(
            fmt::format("{}: {} ({})", frame->func_name != nullptr ? frame->func_name : "?",
                        frame->desc != nullptr && *frame->desc != '\0' ? frame->desc : "no description", minor));
        return 0;
    } catch (...) {
        return -1;
    }
}

}  // namespace

hdf5_error::hdf5_error(std::string_view call, std::string file, std::string object, std::vector<std::string> stack,
                       int native_code)
    : library_error("HDF5", call, native_code, describe(file, object, stack)),
      file_(std::move(file)),
      object_(std::move(object)),
      stack_(std::move(stack)) {}

namespace hdf5 {

quiet::quiet() noexcept {
    static_assert(sizeof(H5E_auto2_t) == sizeof(void*));
    H5E_auto2_t function = nullptr;
    H5Eget_auto2(H5E_DEFAULT, &function, &data_);
    function_ = reinterpret_cast<void*>(function);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

quiet::~quiet() {
    H5Eset_auto2(H5E_DEFAULT, reinterpret_cast<H5E_auto2_t>(function_), data_);
}

std::vector<std::string> error_stack() {
    std::vector<std::string> frames;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect_frame, &frames);
    return frames;
}

}  // namespace hdf5
}  // namespace muster
