#include "comm/c_api/c_call.hpp"

#include <cstring>

namespace muster::c_api {

// Programs have the offsets of these fields compiled in: they never change, and new fields come at the end.
static_assert(static_cast<int>(dtype::u16) == MUSTER_U16 && static_cast<int>(dtype::i8) == MUSTER_I8);
static_assert(offsetof(muster_tensor, memory) == 56 && offsetof(muster_call, splits) == 32 &&
                  offsetof(muster_call, compression) == 40 && offsetof(muster_call, stream) == 48,
              "the C interface is stable");

namespace {

thread_local last_failure kept;

int code_of(errc code) {
    switch (code) {
        case errc::usage:
        case errc::config:
        case errc::parse: return MUSTER_E_USAGE;
        case errc::timeout: return MUSTER_E_TIMEOUT;
        case errc::peer_failed:
        case errc::singleton: return MUSTER_E_PEER;
        case errc::unavailable:
        case errc::not_found: return MUSTER_E_UNAVAILABLE;
        case errc::system:
        case errc::io: return MUSTER_E_SYSTEM;
        case errc::library: return MUSTER_E_LIBRARY;
        default: return MUSTER_E_INTERNAL;
    }
}

}  // namespace

last_failure const& last() noexcept {
    return kept;
}

int failed(int code, char const* message, std::vector<int> ranks) noexcept {
    try {
        kept.message = message;
        kept.ranks = std::move(ranks);
    } catch (...) {
        kept.message.clear();  // there is no memory for the message
    }
    return code;
}

int code_of_current() noexcept {
    try {
        throw;
    } catch (comm_error const& problem) {
        return failed(code_of(problem.code()), problem.what(), problem.culprits());
    } catch (error const& problem) {
        return failed(code_of(problem.code()), problem.what());
    } catch (std::bad_alloc const&) {
        return failed(MUSTER_E_SYSTEM, "out of memory");
    } catch (std::exception const& problem) {
        return failed(MUSTER_E_INTERNAL, problem.what());
    } catch (...) {
        return failed(MUSTER_E_INTERNAL, "an unknown exception");
    }
}

void refuse(std::string const& what) {
    throw comm_error(errc::usage, what);
}

call_parts parts_of(muster_call const* given) {
    auto const what = whole(given, "the call");
    call_parts parts;
    if (what.prescale != 0) parts.call.scale.before = what.prescale;
    if (what.postscale != 0) parts.call.scale.after = what.postscale;
    parts.call.set = what.set;
    parts.root = what.root;
    parts.splits = what.splits;
    switch (what.compression) {
        case MUSTER_WIRE_DEFAULT: break;
        case MUSTER_WIRE_NONE: parts.call.wire = compression::none; break;
        case MUSTER_WIRE_F16: parts.call.wire = compression::f16; break;
        case MUSTER_WIRE_BF16: parts.call.wire = compression::bf16; break;
        default: refuse(fmt::format("{} is no compression; give MUSTER_WIRE_DEFAULT … MUSTER_WIRE_BF16", what.compression));
    }
    if (what.error_feedback < 0 || what.error_feedback > 2)
        refuse(fmt::format("error_feedback is {}; give 0, 1 or 2", what.error_feedback));
    if (what.error_feedback != 0) parts.call.error_feedback = what.error_feedback == 2;
    parts.call.stream = what.stream;
    return parts;
}

tensor_parts parts_of(muster_tensor const* given, bool own_size) {
    need(given, "the tensor");
    auto const what = whole(given, "the tensor");
    tensor_parts parts;
    parts.name = &need(what.name, "the tensor's name");
    if (what.type < MUSTER_F32 || what.type > MUSTER_U16)
        refuse(fmt::format("\"{}\": {} is no type; give MUSTER_F32 … MUSTER_U16", parts.name, what.type));
    if (what.memory != MUSTER_HOST && what.memory != MUSTER_DEVICE)
        refuse(fmt::format("\"{}\": {} is no kind of memory; give MUSTER_HOST or MUSTER_DEVICE", parts.name, what.memory));
    if (what.dimensions < 0 || (what.dimensions > 0 && what.shape == nullptr))
        refuse(
            fmt::format("\"{}\": {} dimensions{}", parts.name, what.dimensions, what.shape == nullptr ? " without a shape" : ""));
    parts.shape = make_shape({what.shape, static_cast<std::size_t>(what.dimensions)});
    auto const count = static_cast<std::size_t>(parts.shape.elements());
    auto const type = static_cast<dtype>(what.type);
    auto const where = static_cast<memory_kind>(what.memory);
    parts.in = {const_cast<void*>(what.in), count, type, where};
    parts.out = {what.out, own_size ? what.out_elements : count, type, where};
    return parts;
}

void copy_text(std::string const& text, char* buffer, std::size_t& size) {
    std::size_t const room = std::exchange(size, text.size() + 1);
    if (buffer != nullptr && room >= size) std::memcpy(buffer, text.c_str(), size);
}

std::vector<named_tensor> tensors_of(muster_tensor const* tensors, std::size_t count, bool own_size) {
    if (count > 0) need(tensors, "the tensors");
    std::vector<named_tensor> all;
    auto const* at = reinterpret_cast<std::byte const*>(tensors);
    for (std::size_t i = 0; i < count; ++i) {
        auto const* const one = reinterpret_cast<muster_tensor const*>(at);
        auto const what = parts_of(one, own_size);
        all.push_back({what.name, what.in, what.out, what.shape});
        at += one->struct_size;
    }
    return all;
}

std::span<int const> list_of(int const* ranks, int count) {
    if (count < 0 || (count > 0 && ranks == nullptr))
        refuse(fmt::format("{} ranks at {} are no list; give one", count, static_cast<void const*>(ranks)));
    return {ranks, static_cast<std::size_t>(count)};
}

reduction reduction_of(int how) {
    if (how < MUSTER_SUM || how > MUSTER_ADASUM) refuse(fmt::format("{} is no reduction; give MUSTER_SUM … MUSTER_ADASUM", how));
    return static_cast<reduction>(how);
}

}  // namespace muster::c_api
