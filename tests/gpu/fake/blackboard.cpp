#include "blackboard.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace muster::fake {

namespace {

[[noreturn]] void give_up(std::string const& what) {
    std::fprintf(stderr, "the fake NCCL cannot write %s: %s\n", what.c_str(), std::strerror(errno));
    std::abort();
}

}  // namespace

void blackboard::post(std::string const& key, bytes what) {
    if (in_memory()) {
        posted_[key] = std::make_shared<bytes const>(std::move(what));
        return;
    }
    std::string const whole = folder_ + "/" + key;
    std::string const part = folder_ + "/.part-" + std::to_string(::getpid()) + "-" + std::to_string(++written_);
    std::ofstream file(part, std::ios::binary);
    file.write(reinterpret_cast<char const*>(what.data()), static_cast<std::streamsize>(what.size()));
    file.close();
    if (!file || std::rename(part.c_str(), whole.c_str()) != 0) give_up(whole);
}

std::shared_ptr<bytes const> blackboard::look(std::string const& key) const {
    if (in_memory()) {
        auto const found = posted_.find(key);
        return found == posted_.end() ? nullptr : found->second;
    }
    std::ifstream file(folder_ + "/" + key, std::ios::binary | std::ios::ate);
    if (!file) return nullptr;
    auto what = std::make_shared<bytes>(static_cast<std::size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(what->data()), static_cast<std::streamsize>(what->size()));
    return file ? what : nullptr;
}

void blackboard::remove(std::string const& key) {
    if (in_memory())
        posted_.erase(key);
    else
        std::remove((folder_ + "/" + key).c_str());
}

blackboard& the_blackboard() {
    static auto& only = *new blackboard([] {
        char const* const folder = std::getenv("MUSTER_FAKE_GPU_FOLDER");
        return std::string(folder == nullptr ? "" : folder);
    }());
    return only;
}

}  // namespace muster::fake
