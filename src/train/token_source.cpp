#include "train/token_source.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "train/token_files.h"

namespace cria {
namespace {

template <class T>
void read_as(const char* from, std::span<int> out) {
  for (int& token : out) {
    T narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    token = static_cast<int>(narrow);
    from += sizeof narrow;
  }
}

void read_tokens(const TokenFile& file, uint64_t begin, std::span<int> out) {
  const auto width = static_cast<uint64_t>(file.width);
  std::vector<char> bytes(out.size() * width);
  file.file.read(begin * width, bytes);
  if (file.width == 1)
    read_as<uint8_t>(bytes.data(), out);
  else if (file.width == 2)
    read_as<uint16_t>(bytes.data(), out);
  else
    read_as<uint32_t>(bytes.data(), out);
}

class JoinedFiles final : public TokenSource {
 public:
  explicit JoinedFiles(std::vector<TokenFile> files) : files_(std::move(files)) {
    for (const TokenFile& file : files_) ends_.push_back(size() + file.count);
  }

  uint64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }

  void read(uint64_t begin, std::span<int> out) const override {
    auto at = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
    for (; !out.empty(); ++at) {
      const uint64_t first = begin - (ends_[at] - files_[at].count);
      const uint64_t count = std::min<uint64_t>(out.size(), files_[at].count - first);
      read_tokens(files_[at], first, out.first(count));
      out = out.subspan(count);
      begin += count;
    }
  }

 private:
  std::vector<TokenFile> files_;
  std::vector<uint64_t> ends_;  // of each file, in tokens from the start of the first
};

class MemoryBytes final : public TokenSource {
 public:
  explicit MemoryBytes(std::string text) : text_(std::move(text)) {}

  uint64_t size() const override { return text_.size(); }
  void read(uint64_t begin, std::span<int> out) const override {
    read_as<uint8_t>(text_.data() + begin, out);
  }

 private:
  std::string text_;
};

}  // namespace

std::unique_ptr<TokenSource> join_files(std::vector<TokenFile> files) {
  return std::make_unique<JoinedFiles>(std::move(files));
}

std::unique_ptr<TokenSource> open_bytes(const std::vector<std::filesystem::path>& paths) {
  std::vector<TokenFile> files;
  for (const auto& path : paths) {
    InputFile file(path);
    const uint64_t count = file.size();
    if (count == 0) fail_f("{} is empty; give a file with text", path.string());
    files.push_back({std::move(file), 1, count});
  }
  return join_files(std::move(files));
}

std::unique_ptr<TokenSource> keep_bytes(std::string text) {
  return std::make_unique<MemoryBytes>(std::move(text));
}

}  // namespace cria
