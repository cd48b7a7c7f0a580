// The blackboard over which ranks of the FAKE NCCL exchange data: threads in memory, processes by files.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::fake {

using bytes = std::vector<std::byte>;

/// Bytes under keys, which all ranks see. In the memory of this process; where a folder is given, as files in it, so that
/// processes meet there. A file is written under another name first: what is seen is whole. Ends the process, saying why, where
/// the folder cannot be written. Not thread safe: it belongs to the machine's lock.
class blackboard {
  public:
    /// "" is memory.
    explicit blackboard(std::string folder) : folder_(std::move(folder)) {}

    void post(std::string const& key, bytes what);
    /// Null: nobody has posted it yet, or it was removed.
    std::shared_ptr<bytes const> look(std::string const& key) const;
    void remove(std::string const& key);

    bool in_memory() const noexcept { return folder_.empty(); }

  private:
    std::string folder_;
    std::map<std::string, std::shared_ptr<bytes const>> posted_;
    unsigned written_ = 0;
};

/// The process' own: in the folder that the variable MUSTER_FAKE_GPU_FOLDER names, else in memory.
blackboard& the_blackboard();

}  // namespace muster::fake
