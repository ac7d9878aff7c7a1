#include "train/data.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/rng.h"
#include "runtime/thread_pool.h"
#include "support/files.h"
#include "support/places.h"
#include "train/generated_text.h"

namespace cria {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;

const fs::path kFixtures = test::in_repository("tests/model/fixtures");

struct Filled {
  std::vector<int> inputs, targets;
  bool operator==(const Filled&) const = default;
};

Filled fill(const TrainingData& data, uint64_t number, Split split, int batch, int seq) {
  Filled out{std::vector<int>(batch * seq), std::vector<int>(batch * seq)};
  data.fill_batch(number, split, out.inputs, out.targets);
  return out;
}

// Bytes that tell their place: two consecutive ones never repeat below 64 Ki.
std::string numbered(size_t bytes) {
  std::string out;
  for (size_t i = 0; out.size() < bytes; ++i) {
    out.push_back(static_cast<char>(i >> 8));
    out.push_back(static_cast<char>(i));
  }
  out.resize(bytes);
  return out;
}

TEST(Data, TargetsAreTheNextTokens) {
  const TemporaryFolder folder;
  write_text(folder / "a", numbered(5000));
  const TextData data({folder / "a"}, nullptr, 4, 16, 1);
  EXPECT_EQ(data.tokens(Split::train), 4750u);
  EXPECT_EQ(data.tokens(Split::validation), 250u);
  for (const Split split : {Split::train, Split::validation}) {
    for (uint64_t number = 0; number < 20; ++number) {
      const Filled batch = fill(data, number, split, 4, 16);
      for (int i = 0; i < 64; ++i) {
        if (i % 16 == 15) continue;
        ASSERT_EQ(batch.targets[i], batch.inputs[i + 1]);
      }
    }
  }
}

TEST(Data, BatchesFollowFromSeedAndNumber) {
  const TemporaryFolder folder;
  write_text(folder / "a", numbered(60000));
  const TextData data({folder / "a"}, nullptr, 2, 8, 1), same({folder / "a"}, nullptr, 2, 8, 1);
  const TextData other({folder / "a"}, nullptr, 2, 8, 2);
  EXPECT_EQ(fill(data, 7, Split::train, 2, 8), fill(same, 7, Split::train, 2, 8));
  EXPECT_NE(fill(data, 7, Split::train, 2, 8), fill(data, 8, Split::train, 2, 8));
  EXPECT_NE(fill(data, 7, Split::train, 2, 8), fill(other, 7, Split::train, 2, 8));
  EXPECT_EQ(fill(data, 7, Split::validation, 2, 8), fill(other, 7, Split::validation, 2, 8));
  const uint64_t round = data.validation_batches();
  EXPECT_EQ(round, ((3000 - 1) / 8 + 1) / 2u);
  EXPECT_EQ(fill(data, 0, Split::validation, 2, 8), fill(data, round, Split::validation, 2, 8));
}

// Every sequence kept for validation counts once, also where they fill no whole number of batches.
TEST(Data, EveryValidationSequenceCountsOnce) {
  const TemporaryFolder folder;
  write_text(folder / "a", numbered(2000));  // 100 tokens, 12 sequences of 8
  for (const auto& [batch, batches, last] :
       {std::array{4, 3, 4}, {5, 3, 2}, {12, 1, 12}, {13, 1, 12}, {1, 12, 1}}) {
    const TextData data({folder / "a"}, nullptr, batch, 8, 1);
    ASSERT_EQ(data.validation_batches(), static_cast<uint64_t>(batches));
    std::map<std::vector<int>, int> seen;
    for (int number = 0; number < batches; ++number) {
      std::vector<int> inputs(batch * 8), targets(batch * 8);
      const int counted = data.fill_batch(number, Split::validation, inputs, targets);
      EXPECT_EQ(counted, number + 1 < batches ? batch : last);
      for (int row = 0; row < counted; ++row)
        ++seen[std::vector<int>(inputs.begin() + row * 8, inputs.begin() + (row + 1) * 8)];
    }
    EXPECT_EQ(seen.size(), 12u);
    for (const auto& [sequence, times] : seen) EXPECT_EQ(times, 1);
    std::vector<int> inputs(batch * 8), targets(batch * 8);
    EXPECT_EQ(data.fill_batch(0, Split::train, inputs, targets), batch);
  }
}

// Trained and validated tokens never meet.
TEST(Data, SplitsAreApart) {
  const TemporaryFolder folder;
  std::string text(2000, 'a');
  text.replace(1900, 100, std::string(100, 'z'));
  write_text(folder / "a", text);
  const TextData data({folder / "a"}, nullptr, 3, 10, 1);
  for (uint64_t number = 0; number < 2000; ++number) {
    const Filled train = fill(data, number, Split::train, 3, 10);
    const Filled validation = fill(data, number, Split::validation, 3, 10);
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(train.inputs[i], 'a');
      ASSERT_EQ(train.targets[i], 'a');
      ASSERT_EQ(validation.inputs[i], 'z');
      ASSERT_EQ(validation.targets[i], 'z');
    }
  }

  // A text of exactly the least size: one sequence each.
  write_text(folder / "b", numbered(22));
  const TextData least({folder / "b"}, nullptr, 1, 10, 1);
  const Filled train = fill(least, 5, Split::train, 1, 10);
  EXPECT_EQ(train.inputs, (std::vector<int>{0, 0, 0, 1, 0, 2, 0, 3, 0, 4}));
  EXPECT_EQ(train.targets[9], 0);
  EXPECT_EQ(fill(least, 0, Split::validation, 1, 10).inputs[0], 5);
}

TEST(Data, FilesAreJoined) {
  const TemporaryFolder folder;
  const std::string text = numbered(3000);
  write_text(folder / "whole", text);
  write_text(folder / "a", text.substr(0, 7));
  write_text(folder / "b", text.substr(7, 1));
  write_text(folder / "c", text.substr(8));
  const TextData whole({folder / "whole"}, nullptr, 8, 32, 1);
  const TextData parts({folder / "a", folder / "b", folder / "c"}, nullptr, 8, 32, 1);
  for (uint64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(fill(whole, number, Split::train, 8, 32), fill(parts, number, Split::train, 8, 32));
  }
  std::vector<int> all(3000);
  open_bytes({folder / "a", folder / "b", folder / "c"})->read(0, all);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<uint8_t>(text[i]));
}

TEST(Data, UnusableTextIsNamed) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& name, const Tokenizer* tokenizer = nullptr) {
    return [&, name, tokenizer] {
      TextData({folder / name}, tokenizer, 1, 10, 1, {}, folder / "cache");
    };
  };
  const auto tokenizer = load_tokenizer(kFixtures / "gpt2.json");
  write_text(folder / "empty", "");
  write_text(folder / "short", std::string(21, 'x'));
  for (const Tokenizer* t :
       {static_cast<const Tokenizer*>(nullptr), static_cast<const Tokenizer*>(tokenizer.get())}) {
    expect_error(open("none", t), {"/none", "No such file"});
    expect_error(open("empty", t), {"/empty", "is empty"});
  }
  expect_error(open("short"), {"/short", "21 tokens", "need 22"});
  expect_error(open(""), {folder.path().string(), "not a file"});
  expect_error([] { TextData({}, nullptr, 1, 10, 1); }, {"no file"});
}

std::vector<int> all_tokens(const TokenSource& source) {
  std::vector<int> out(source.size());
  source.read(0, out);
  return out;
}

TEST(Data, TokensAreMadeOnceAndKept) {
  const TemporaryFolder folder;
  const auto tokenizer = load_tokenizer(kFixtures / "llama3.json");
  const std::string text = "the cat sat on the mat 123\n";
  write_text(folder / "a", text);
  int calls = 0;
  const auto open = [&] {
    return open_tokens({folder / "a"}, *tokenizer, folder / "cache", [&](double) { ++calls; });
  };
  std::vector<int> want = tokenizer->encode(text);
  want.push_back(*tokenizer->eos());
  EXPECT_EQ(all_tokens(*open()), want);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(all_tokens(*open()), want);
  EXPECT_EQ(calls, 1);
  // A damaged file is made again.
  const fs::path kept = fs::directory_iterator(folder / "cache")->path();
  fs::resize_file(kept, fs::file_size(kept) - 3);
  EXPECT_EQ(all_tokens(*open()), want);
  EXPECT_EQ(calls, 2);
  // So is that of a text that has changed, even if its size and its time have not.
  const auto time = fs::last_write_time(folder / "a");
  std::string other = text;
  std::swap(other[4], other[8]);
  write_text(folder / "a", other);
  fs::last_write_time(folder / "a", time);
  want = tokenizer->encode(other);
  want.push_back(*tokenizer->eos());
  EXPECT_EQ(all_tokens(*open()), want);
  EXPECT_EQ(calls, 3);
  // The same text elsewhere has the same tokens.
  fs::rename(folder / "a", folder / "b");
  fs::copy_file(folder / "b", folder / "a");
  EXPECT_EQ(all_tokens(*open()), want);
  EXPECT_EQ(calls, 3);
}

// A text of several times what is in memory at once has the tokens that it would have as a whole.
TEST(Data, LongTextsAreReadInPieces) {
  const TemporaryFolder folder;
  const auto tokenizer = load_tokenizer(kFixtures / "gpt2.json");
  const size_t piece = size_t(ThreadPool::shared().workers()) * (5 << 18);
  std::string text;
  Rng rng(5);
  while (text.size() < 2 * piece + piece / 3)
    text += std::string(1 + rng.below(9), char('a' + rng.below(26))) + (rng.below(7) ? " " : "\n");
  write_text(folder / "a", text);
  double last = 0;
  const auto tokens = all_tokens(*open_tokens({folder / "a"}, *tokenizer, folder / "cache",
                                              [&](double share) { last = share; }));
  std::vector<int> want = tokenizer->encode(text);
  if (tokenizer->eos()) want.push_back(*tokenizer->eos());
  EXPECT_TRUE(tokens == want) << tokens.size() << " tokens, not " << want.size();
  EXPECT_EQ(last, 1);
}

TEST(Data, TokensThatAKilledProcessLeftAreRemoved) {
  const TemporaryFolder folder;
  const auto tokenizer = load_tokenizer(kFixtures / "gpt2.json");
  write_text(folder / "a", "the cat sat on the mat");
  fs::create_directory(folder / "cache");
  write_text(folder / "cache/0123456789abcdef.tokens.cria-aBcDeF", "part");
  open_tokens({folder / "a"}, *tokenizer, folder / "cache");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "cache"), {}), 1);
}

TEST(Data, AFileCutShortIsAnError) {
  const TemporaryFolder folder;
  write_text(folder / "a", std::string(10000, 'x'));
  const TextData data({folder / "a"}, nullptr, 2, 10, 1);
  fill(data, 0, Split::validation, 2, 10);
  fs::resize_file(folder / "a", 100);
  expect_error([&] { fill(data, 0, Split::validation, 2, 10); }, {"/a", "cut short"});
}

// Long texts are tokenized in parts; the parts' tokens are those of the whole.
TEST(Data, PartsHaveTheTokensOfTheWhole) {
  const std::vector<std::string> lines = {
      "the cat's mat",   "  indented 1234", "", "日本語。", "x!", "\t", "end. ",
      "e\u0301te\u0301", "\u0301\u0323 a"};
  Rng rng(3);
  std::string text;
  while (text.size() < 40000)
    text += lines[rng.below(lines.size())] + (rng.below(9) == 0 ? "\r\n" : "\n");
  text.insert(20000, std::string(300000, 'y'));  // longer than the search for a good place
  const TemporaryFolder folder;
  std::vector<fs::path> files;
  for (const char* name : {"gpt2", "smollm", "llama3", "qwen2", "llama2", "metaspace"})
    files.push_back(kFixtures / (std::string(name) + ".json"));
  std::string always = read_text(files.back());
  const std::string first = "\"prepend_scheme\":\"first\",\"split\":false";
  ASSERT_NE(always.find(first), std::string::npos);
  always.replace(always.find(first), first.size(), "\"prepend_scheme\":\"always\"");
  files.push_back(folder / "always.json");
  write_text(files.back(), always);
  for (const fs::path& file : files) {
    const auto tokenizer = load_tokenizer(file);
    std::vector<int> joined;
    std::string_view rest = text;
    int parts = 0;
    for (; !rest.empty(); ++parts) {
      // Short parts, so that many places are tried; the function itself never cuts below its reach.
      const size_t end = rest.size() > 270000 ? cut_for_tokenizing(rest, 100) : rest.size();
      const auto tokens = tokenizer->encode_part(rest.substr(0, end), parts == 0);
      joined.insert(joined.end(), tokens.begin(), tokens.end());
      rest.remove_prefix(end);
    }
    EXPECT_GT(parts, 10);
    EXPECT_EQ(joined, tokenizer->encode(text)) << file;
  }
}

TEST(Data, CutsNeverSplitACharacter) {
  std::string text;
  while (text.size() < 600000) text += "語";
  const size_t end = cut_for_tokenizing(text, 1000);
  EXPECT_LT(end, text.size());
  EXPECT_EQ(end % 3, 0u);

  // Nor what is one character to readers and normal forms.
  std::string accents;
  while (accents.size() < 600000) accents += "e\u0301\u0323";
  for (size_t wish = 1000; wish < 1005; ++wish)
    EXPECT_EQ(cut_for_tokenizing(accents, wish) % 5, 0u);
}

// Nats per token when the `order` tokens before are known.
double entropy(const std::string& text, size_t order) {
  std::map<std::string, std::map<char, double>> counts;
  for (size_t i = order; i < text.size(); ++i) ++counts[text.substr(i - order, order)][text[i]];
  double sum = 0;
  for (const auto& [context, next] : counts) {
    double total = 0;
    for (const auto& [c, n] : next) total += n;
    for (const auto& [c, n] : next) sum -= n * std::log(n / total);
  }
  return sum / static_cast<double>(text.size() - order);
}

TEST(Data, GeneratedTextCanBeLearnt) {
  const std::string english = generate_text(256, 200000, 1);
  EXPECT_EQ(english.size(), 200000u);
  EXPECT_LT(entropy(english, 4), 0.15 * std::log(256.0));
  EXPECT_GT(entropy(english, 0), 2.5);  // and is not trivial
  const std::string few = generate_text(50, 100000, 1);
  EXPECT_LT(entropy(few, 1), 1.1);  // three followers: ln 3
  for (const char c : few) ASSERT_LT(static_cast<uint8_t>(c), 50);
  EXPECT_EQ(generate_text(256, 1000, 1), generate_text(1000, 1000, 1));
  EXPECT_NE(generate_text(256, 1000, 1), generate_text(256, 1000, 2));
  EXPECT_EQ(generate_text(1, 10, 1), std::string(10, '\0'));
}

TEST(Data, GeneratedBatches) {
  const GeneratedData data(256, 2, 32, 1);
  const Filled batch = fill(data, 0, Split::train, 2, 32);
  EXPECT_EQ(batch.inputs[1], batch.targets[0]);
  EXPECT_NO_THROW(GeneratedData(1000, 1, 1 << 20, 1));
}

}  // namespace
}  // namespace cria
