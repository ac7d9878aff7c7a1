// Writing that survives a crash: a file or a name is the old one or the new one, never a part, and
// what has returned is on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cria {

// Bytes go to a temporary file beside `path`, or beside the file that a link of this name leads to;
// commit() syncs it, renames it over that file and syncs the folder. Without commit() nothing
// remains. A device, a pipe, and what is this process's own output, is written as the bytes come.
class DurableFile {
 public:
  explicit DurableFile(const std::filesystem::path& path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::string_view bytes);
  void commit();

  // Removes what a DurableFile was writing to whose process was killed; no other file.
  static void remove_if_abandoned(const std::filesystem::path& path);

 private:
  void open_temporary();
  void send();
  [[noreturn]] void give_up(const char* what_to_do);
  void discard();

  std::string path_;
  std::string temporary_;  // locked while it is written; empty: written as the bytes come
  int file_ = -1;
  int64_t written_ = 0, sent_ = 0, done_ = 0;  // bytes: so far, on their way to the disk, there
};

// An Error when a DurableFile could not be written there. Leaves everything as it is.
void check_writable(const std::filesystem::path& path);

// Makes the names in a folder (files made, renamed or removed) survive a crash.
void sync_folder(const std::filesystem::path& folder);

// Renames a file or folder and syncs the folder it is in.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace cria
