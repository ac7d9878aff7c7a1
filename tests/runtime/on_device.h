// A fixture for tests that run on the CPU and on CUDA, and skip where there is no CUDA device.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "runtime/device.h"

namespace cria::test {

inline bool has_cuda() { return devices().size() > 1; }

class OnDevice : public ::testing::TestWithParam<Backend> {
 protected:
  void SetUp() override {
    if (GetParam() == Backend::cuda && !has_cuda()) GTEST_SKIP() << "no CUDA device";
  }
  Device device() const { return on_cuda() ? devices().at(1) : kCpu; }
  bool on_cuda() const { return GetParam() == Backend::cuda; }
};

inline auto every_backend() { return ::testing::Values(Backend::cpu, Backend::cuda); }

inline std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  return info.param == Backend::cuda ? "cuda" : "cpu";
}

// Fails unless f() throws an Error whose message contains `words`.
template <class F>
void expect_error(F&& f, const std::string& words) {
  try {
    f();
    ADD_FAILURE() << "no Error thrown; expected one about: " << words;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

}  // namespace cria::test
