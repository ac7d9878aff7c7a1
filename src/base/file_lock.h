// A lock between processes that goes with the one that holds it, however that ends. It is on a file
// of its own, which stays and tells who holds it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace cria {

class FileLock {
 public:
  // Waits until nobody else holds it. The file is made if need be; an Error, which ends with
  // `what_to_do`, when it cannot be.
  FileLock(const std::filesystem::path& path, const char* what_to_do);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

  // The same without waiting: nothing when someone else holds it.
  static std::optional<FileLock> take(const std::filesystem::path& path, const char* what_to_do);

  // "process 1234", who holds it as far as the file tells, else "another process".
  static std::string holder(const std::filesystem::path& path);

 private:
  explicit FileLock(int file) : file_(file) {}
  static int open(const std::filesystem::path& path, const char* what_to_do);
  void sign() const;

  int file_;
};

}  // namespace cria
