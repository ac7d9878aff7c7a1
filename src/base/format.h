// Formatted errors. Kept apart from error.h because CUDA translation units do not include {fmt}.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "base/error.h"

namespace cria {

template <class... Args>
[[noreturn]] void fail_f(fmt::format_string<Args...> format, Args&&... args) {
  fail(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cria
