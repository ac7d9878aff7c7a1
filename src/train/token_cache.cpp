// Text files as files of tokens: the tokens, 2 or 4 bytes each, then a trailer that tells a whole
// file from anything else.
#include <array>
#include <bit>
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

// To tell texts and tokenizers apart: eight bytes at a time, because a text is long, and in the end
// their number.
uint64_t hash_of(std::string_view text, uint64_t hash) {
  const auto mix = [&](uint64_t x) { hash = std::rotl((hash ^ x) * 0x9e3779b97f4a7c15u, 29); };
  const size_t size = text.size();
  for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
    uint64_t x;
    std::memcpy(&x, text.data(), sizeof x);
    mix(x);
  }
  for (const char c : text) mix(static_cast<uint8_t>(c));
  mix(size);
  return hash;
}

uint64_t hash_of(const InputFile& file, uint64_t hash) {
  std::string piece;
  for (uint64_t begin = 0; begin < file.size(); begin += piece.size()) {
    piece.resize(std::min<uint64_t>(kChunk, file.size() - begin));
    file.read(begin, piece);
    hash = hash_of(piece, hash);
  }
  return hash;
}

// A name that changes when the text or the tokenizer does. All of the text is read for it, since
// its time and size may be those of another one; that takes a fraction of what tokenizing would.
std::string cache_name(const InputFile& file, const Tokenizer& tokenizer) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const auto& [name, text] : tokenizer.files()) hash = hash_of(text, hash_of(name, hash));
  if (const auto eos = tokenizer.eos()) hash = hash_of(fmt::format("{}", *eos), hash);
  return fmt::format("{:016x}.tokens", hash_of(file, hash));
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

// A text in chunks, of which so many are in memory at a time.
class ChunkReader {
 public:
  ChunkReader(const InputFile& file, size_t most) : file_(file), most_(most) {}

  // The next ones, valid until the next call; none at the end.
  std::vector<std::string_view> next() {
    // What a chunk needs behind it to be cut where it would be with all of the text in memory.
    constexpr size_t kBehind = 4;
    const size_t want = most_ * (kChunk + kReach) + kBehind;
    text_.resize(std::min<uint64_t>(want, file_.size() - begin_));
    file_.read(begin_, text_);
    const bool ends = begin_ + text_.size() == file_.size();
    std::vector<std::string_view> out;
    std::string_view rest = text_;
    while (!rest.empty() && out.size() < most_ &&
           (ends || rest.size() > kChunk + kReach + kBehind - 1)) {
      out.push_back(rest.substr(0, cut_for_tokenizing(rest, kChunk)));
      rest.remove_prefix(out.back().size());
    }
    begin_ += text_.size() - rest.size();
    return out;
  }

  uint64_t done() const { return begin_; }

 private:
  const InputFile& file_;
  const size_t most_;
  std::string text_;
  uint64_t begin_ = 0;  // of what comes next
};

void tokenize(const InputFile& file, const Tokenizer& tokenizer, const fs::path& target,
              const TokenizeProgress& progress) {
  if (file.size() == 0) fail_f("{} is empty; give a file with text", file.path());
  const int width = token_width(tokenizer);
  DurableFile out(target);
  Trailer trailer{.width = static_cast<uint64_t>(width)};
  ThreadPool& pool = ThreadPool::shared();
  ChunkReader reader(file, static_cast<size_t>(pool.workers()));
  bool first = true;
  while (reader.done() < file.size()) {
    const auto chunks = reader.next();
    std::vector<std::vector<int>> tokens(chunks.size());
    pool.run(static_cast<int64_t>(chunks.size()), [&](int64_t i, int) {
      const auto at = static_cast<size_t>(i);
      tokens[at] = tokenizer.encode_part(chunks[at], first && i == 0);
    });
    first = false;
    for (const auto& part : tokens) {
      write_tokens(out, part, width);
      trailer.count += part.size();
    }
    if (progress) progress(static_cast<double>(reader.done()) / static_cast<double>(file.size()));
  }
  if (const auto eos = tokenizer.eos()) {
    write_tokens(out, {&*eos, 1}, width);
    ++trailer.count;
  }
  out.write({reinterpret_cast<const char*>(&trailer), sizeof trailer});
  out.commit();
}

// What killed processes have left in the folder.
void remove_abandoned(const fs::path& cache) {
  std::error_code ignored;  // another process may remove it, too
  for (const auto& entry : fs::directory_iterator(cache, ignored))
    DurableFile::remove_if_abandoned(entry.path());
}

// A file that tokenize() made; nothing when it is not there or not whole.
std::optional<TokenFile> open_cached(const fs::path& path, int width) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  InputFile file(path);
  if (file.size() < sizeof(Trailer)) return std::nullopt;
  const uint64_t data = file.size() - sizeof(Trailer);
  Trailer found;
  file.read(data, {reinterpret_cast<char*>(&found), sizeof found});
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
  for (const fs::path& path : files) {
    const InputFile file(path);
    const std::string name = cache_name(file, tokenizer);
    std::optional<TokenFile> tokens = open_cached(cache / name, width);
    if (!tokens) {
      remove_abandoned(cache);
      tokenize(file, tokenizer, cache / name, progress);
      if (cache_name(file, tokenizer) != name) {
        fs::remove(cache / name, error);
        fail_f("{} was changed while it was read: try again", file.path());
      }
      tokens = open_cached(cache / name, width);
    }
    if (!tokens) fail_f("{} was damaged while it was made; try again", (cache / name).string());
    out.push_back(std::move(*tokens));
  }
  return join_files(std::move(out));
}

}  // namespace cria
