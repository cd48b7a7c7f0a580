// The descriptors of a child that is being started: lie at low numbers, so that the child has few to copy and to close.
#pragma once

namespace muster {

/// A child gets a copy of the table of descriptors, and closes at exec what is not to be passed on. With two pipes for each rank that
/// runs already that is most of the work of starting one, and grows with their number. So what becomes 0, 1 and 2 lies where three
/// numbers were set aside when this thread started its first child, and all above `first_unneeded` need not be copied at all:
/// whoever started this process may have passed descriptors on, and they stay below. One object a thread lives at a time.
class child_descriptors {
  public:
    /// `from` are three open descriptors; -1 stands for /dev/null. Throws errc::system.
    explicit child_descriptors(int const (&from)[3]);
    ~child_descriptors();
    child_descriptors(child_descriptors const&) = delete;
    child_descriptors& operator=(child_descriptors const&) = delete;

    int const* numbers() const noexcept;  ///< three, which close at exec
    unsigned first_unneeded() const noexcept;

  private:
    bool is_null_[3];
};

}  // namespace muster
