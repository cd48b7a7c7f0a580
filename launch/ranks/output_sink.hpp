// The way on for what ranks print: this process' own descriptors, or the launcher.
#pragma once

#include <string>

namespace muster {

class output_sink {
  public:
    /// Takes what a rank has written to `fd`, 1 or 2, in order.
    virtual void write(int fd, std::string block) = 0;
    /// Takes a whole line of muster's messages, for standard error.
    virtual void note(std::string line) = 0;
    /// Whether to read no more from the ranks for now, which then wait.
    virtual bool congested() const = 0;

  protected:
    ~output_sink() = default;
};

}  // namespace muster
