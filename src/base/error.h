// The one exception type. A message says what happened, where, and what to do about it.
#pragma once

#include <stdexcept>
#include <string>

namespace cria {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);
  ~Error() override;
};

[[noreturn]] void fail(const std::string& message);

// Checks what must hold in every build, unlike assert.
inline void require(bool ok, const char* message) {
  if (!ok) [[unlikely]] {
    fail(message);
  }
}

}  // namespace cria
