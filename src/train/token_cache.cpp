// Text files as files of tokens: the tokens, 2 or 4 bytes each, then a trailer that tells a whole
// file from anything else.
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/durable_file.h"
#include "base/format.h"
#include "model/unicode.h"
#include "runtime/config_table.h"
#include "runtime/thread_pool.h"
#include "train/token_files.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = 1 << 20;  // of text for one call of encode_part()
constexpr size_t kReach = 1 << 18;  // how far a good place to cut is looked for

struct Trailer {
  std::array<char, 8> magic = {'c', 'r', 'i', 'a', 't', 'o', 'k', '2'};
  uint64_t width = 0;  // bytes of a token
  uint64_t count = 0;

  bool operator==(const Trailer&) const = default;
};

// FNV-1a, to tell files and tokenizers apart.
uint64_t hash_of(std::string_view text, uint64_t hash = 0xcbf29ce484222325u) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

// A name that changes when the text's path, size or time, or the tokenizer, does.
std::string cache_name(const fs::path& file, const Tokenizer& tokenizer) {
  struct stat info = {};
  if (::stat(file.c_str(), &info) != 0)
    fail_f("cannot read {}: {}; check the path", file.string(), std::strerror(errno));
  std::error_code ignored;
  const std::string identity = fmt::format("{}\n{}\n{}.{}", fs::absolute(file, ignored).string(),
                                           info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  uint64_t hash = hash_of(identity);
  for (const auto& [name, text] : tokenizer.files()) hash = hash_of(text, hash_of(name, hash));
  if (const auto eos = tokenizer.eos()) hash = hash_of(fmt::format("{}", *eos), hash);
  return fmt::format("{:016x}.tokens", hash);
}

int token_width(const Tokenizer& tokenizer) { return tokenizer.vocab_size() <= 0x10000 ? 2 : 4; }

void write_tokens(DurableFile& file, std::span<const int> tokens, int width) {
  std::string bytes(tokens.size() * static_cast<size_t>(width), '\0');
  char* to = bytes.data();
  for (const int token : tokens) {
    std::memcpy(to, &token, static_cast<size_t>(width));  // the low bytes
    to += width;
  }
  file.write(bytes);
}

// The next chunks of a text, cut off its front.
std::vector<std::string_view> take_chunks(std::string_view& text, size_t most) {
  std::vector<std::string_view> out;
  while (!text.empty() && out.size() < most) {
    const size_t end = cut_for_tokenizing(text, kChunk);
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return out;
}

void tokenize(const fs::path& source, const Tokenizer& tokenizer, const fs::path& target,
              const TokenizeProgress& progress) {
  const MappedFile file(source);
  std::string_view rest = file.text();
  if (rest.empty()) fail_f("{} is empty; give a file with text", source.string());
  const int width = token_width(tokenizer);
  DurableFile out(target);
  Trailer trailer{.width = static_cast<uint64_t>(width)};
  ThreadPool& pool = ThreadPool::shared();
  while (!rest.empty()) {
    const auto chunks = take_chunks(rest, static_cast<size_t>(pool.workers()));
    std::vector<std::vector<int>> tokens(chunks.size());
    pool.run(static_cast<int64_t>(chunks.size()), [&](int64_t i, int) {
      const std::string_view chunk = chunks[static_cast<size_t>(i)];
      const bool first = chunk.data() == file.text().data();
      tokens[static_cast<size_t>(i)] = tokenizer.encode_part(chunk, first);
    });
    for (const auto& part : tokens) {
      write_tokens(out, part, width);
      trailer.count += part.size();
    }
    if (progress)
      progress(1 - static_cast<double>(rest.size()) / static_cast<double>(file.text().size()));
  }
  if (const auto eos = tokenizer.eos()) {
    write_tokens(out, {&*eos, 1}, width);
    ++trailer.count;
  }
  out.write({reinterpret_cast<const char*>(&trailer), sizeof trailer});
  out.commit();
}

// A file that tokenize() made; nothing when it is not there or not whole.
std::optional<TokenFile> open_cached(const fs::path& path, int width) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  MappedFile file(path);
  const std::string_view bytes = file.text();
  if (bytes.size() < sizeof(Trailer)) return std::nullopt;
  const uint64_t data = bytes.size() - sizeof(Trailer);
  Trailer found;
  std::memcpy(&found, bytes.data() + data, sizeof found);
  const Trailer want{.width = static_cast<uint64_t>(width),
                     .count = data / static_cast<uint64_t>(width)};
  if (found != want || data != want.count * want.width) return std::nullopt;
  return TokenFile{std::move(file), width, want.count};
}

// Where the character that ends before `at` starts.
size_t char_before(std::string_view text, size_t at) {
  size_t start = at - 1;
  while (start > 0 && at - start < 4 && (text[start] & 0xc0) == 0x80) --start;
  return start;
}

}  // namespace

size_t cut_for_tokenizing(std::string_view text, size_t wish) {
  if (text.size() <= wish + kReach) return text.size();
  const auto is_space_before = [&](size_t at) {
    const size_t start = char_before(text, at);
    return class_of(first_char(text.substr(start, at - start)).code) == CharClass::space;
  };
  for (size_t at = wish; at < wish + kReach; ++at) {
    if (text[at] != '\n' || at == 0 || is_space_before(at)) continue;
    if (class_of(first_char(text.substr(at + 1)).code) != CharClass::space) return at + 1;
  }
  // Nor between a character and its accents: a normal form would join them.
  const auto may_cut = [&](size_t at) {
    const char32_t before = first_char(text.substr(char_before(text, at))).code;
    return (text[at] & 0xc0) != 0x80 && may_cut_between(before, first_char(text.substr(at)).code);
  };
  size_t at = wish + kReach;
  while (at > wish + 1 && !may_cut(at)) --at;
  return at;
}

fs::path token_cache_folder() {
  const fs::path tuned = tuning_cache_path();
  return (tuned.has_parent_path() ? tuned.parent_path() : fs::temp_directory_path() / "cria") /
         "tokens";
}

std::unique_ptr<TokenSource> open_tokens(const std::vector<fs::path>& files,
                                         const Tokenizer& tokenizer, const fs::path& cache,
                                         const TokenizeProgress& progress) {
  std::error_code error;
  fs::create_directories(cache, error);
  if (error)
    fail_f("cannot make the folder {} for tokens: {}; set XDG_CACHE_HOME", cache.string(),
           error.message());
  const int width = token_width(tokenizer);
  std::vector<TokenFile> out;
  for (const fs::path& file : files) {
    const fs::path kept = cache / cache_name(file, tokenizer);
    std::optional<TokenFile> tokens = open_cached(kept, width);
    if (!tokens) {
      tokenize(file, tokenizer, kept, progress);
      tokens = open_cached(kept, width);
    }
    if (!tokens) fail_f("{} was damaged while it was made; try again", kept.string());
    out.push_back(std::move(*tokens));
  }
  return join_files(std::move(out));
}

}  // namespace cria
