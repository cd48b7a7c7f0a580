// The message of an error that a test expects. Fails the test where nothing, or an error of another code, is thrown.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"

namespace muster {

template <typename Body>
std::string message_of(errc code, Body&& body) {
    try {
        body();
    } catch (error const& problem) {
        EXPECT_EQ(problem.code(), code) << problem.what();
        return problem.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}

}  // namespace muster
