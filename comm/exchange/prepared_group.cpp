#include "comm/exchange/prepared_group.hpp"

#include "comm/backend/comm_error.hpp"
#include "comm/exchange/core/exchange_core.hpp"
#include "comm/exchange/request/pending_request.hpp"

namespace muster {

namespace {

[[noreturn]] void refuse_empty() {
    throw comm_error(errc::usage, "this prepared group is empty; make it by exchange::prepare");
}

}  // namespace

prepared_group::prepared_group() noexcept = default;
prepared_group::prepared_group(prepared_group&& other) noexcept = default;
prepared_group& prepared_group::operator=(prepared_group&& other) noexcept = default;
prepared_group::~prepared_group() = default;

prepared_group::prepared_group(std::shared_ptr<detail::exchange_core> core, std::unique_ptr<detail::prepared const> what) noexcept
    : core_(std::move(core)), what_(std::move(what)) {}

exchange_handle prepared_group::start(void* stream) {
    if (!what_) refuse_empty();
    auto const started = core_->start(*what_, stream);
    return {*started, core_};
}

std::string const& prepared_group::name() const {
    if (!what_) refuse_empty();
    return what_->what->name;
}

std::size_t prepared_group::tensors() const noexcept {
    return what_ ? what_->tensors->size() : 0;
}

std::size_t prepared_group::bytes() const noexcept {
    return what_ ? what_->bytes : 0;
}

}  // namespace muster
