#include "base/shared_library.hpp"

#include <dlfcn.h>

namespace muster {

shared_library::shared_library(std::span<std::string const> names) {
    for (auto const& name : names) {
        handle_ = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (handle_ != nullptr) {
            name_ = name;
            missing_.clear();
            return;
        }
        char const* reason = ::dlerror();
        if (!missing_.empty()) missing_ += "; ";
        missing_ += reason != nullptr ? reason : name;
    }
}

void* shared_library::find(char const* symbol_name) const noexcept {
    return handle_ != nullptr ? ::dlsym(handle_, symbol_name) : nullptr;
}

}  // namespace muster
