#include "pmix/library/completion.hpp"

#include "base/throw_error.hpp"
#include "pmix/library/info_list.hpp"

namespace muster::pmix {

void* completion::expect_one() {
    auto* cookie = new std::shared_ptr<completion>(shared_from_this());
    std::scoped_lock const guard(lock_);
    ++pending_;
    return cookie;
}

void completion::cancel(void* cookie) {
    done(PMIX_SUCCESS, cookie);
}

void completion::done(pmix_status_t status, void* cookie) {
    std::unique_ptr<std::shared_ptr<completion>> const self(static_cast<std::shared_ptr<completion>*>(cookie));
    std::scoped_lock const guard((*self)->lock_);
    if ((*self)->status_ == PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) (*self)->status_ = status;
    --(*self)->pending_;
    (*self)->changed_.notify_all();
}

bool completion::wait(duration deadline) {
    std::unique_lock guard(lock_);
    return changed_.wait_for(guard, deadline, [this] { return pending_ == 0; });
}

pmix_status_t completion::status() {
    std::scoped_lock const guard(lock_);
    return status_;
}

void completion::wait_or_throw(duration deadline, std::string_view call) {
    if (!wait(deadline))
        throw_error(errc::timeout,
                    "{} did not answer in time; look for ranks that have ended, and for other load on this machine", call);
    check(status(), call);
}

}  // namespace muster::pmix
