// Tests of things in files: a folder that goes away by itself, and the message of an Error.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "base/error.h"

namespace cria::test {

class TemporaryFolder {
 public:
  explicit TemporaryFolder(
      const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "cria-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string error_of(auto&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Fails unless f() throws an Error whose message has every one of the parts.
void expect_error(auto&& f, std::initializer_list<std::string> parts) {
  const std::string message = error_of(f);
  for (const std::string& part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << "no \"" << part << "\" in: " << message;
}

// Where a sync takes no time, for tests that save often; the usual place where there is no such.
inline std::filesystem::path memory_folder() {
  const std::filesystem::path shm = "/dev/shm";
  return ::access(shm.c_str(), W_OK) == 0 ? shm : std::filesystem::temp_directory_path();
}

}  // namespace cria::test
