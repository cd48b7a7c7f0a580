#include "io/c_api/io_call.hpp"

#include <new>

namespace muster::io_api {

namespace {

thread_local std::string kept;

int io_code(errc code) {
    switch (code) {
        case errc::usage:
        case errc::config:
        case errc::parse: return MUSTER_IO_E_USAGE;
        case errc::unavailable: return MUSTER_IO_E_UNAVAILABLE;
        case errc::not_found: return MUSTER_IO_E_NOT_FOUND;
        case errc::invalid_data: return MUSTER_IO_E_DATA;
        case errc::system:
        case errc::io: return MUSTER_IO_E_SYSTEM;
        case errc::library: return MUSTER_IO_E_LIBRARY;
        default: return MUSTER_IO_E_INTERNAL;
    }
}

int keep(int code, char const* message) noexcept {
    try {
        kept = message;
    } catch (...) {
        kept.clear();  // no memory for the message
    }
    return code;
}

}  // namespace

char const* last_message() noexcept {
    return kept.c_str();
}

int code_of_current() noexcept {
    try {
        throw;
    } catch (error const& problem) {
        return keep(io_code(problem.code()), problem.what());
    } catch (std::bad_alloc const&) {
        return keep(MUSTER_IO_E_SYSTEM, "out of memory");
    } catch (std::exception const& problem) {
        return keep(MUSTER_IO_E_INTERNAL, problem.what());
    } catch (...) {
        return keep(MUSTER_IO_E_INTERNAL, "an unknown exception");
    }
}

}  // namespace muster::io_api
