// Tokenizers against what Hugging Face's own library says (fixtures/make_tokenizers.py), round
// trips of hard text, and files that must be refused.
#include "model/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/rng.h"
#include "model/split_patterns.h"
#include "model/unicode.h"
#include "support/files.h"
#include "support/places.h"

namespace cria {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;

const fs::path kFixtures = test::in_repository("tests/model/fixtures");

std::vector<std::string> hard_texts() {
  std::vector<std::string> out;
  for (const Json& entry : read_json(kFixtures / "gpt2.cases.json")) out.push_back(entry[0]);
  out.push_back(std::string(100000, ' '));
  out.push_back(std::string(5000, '\n') + std::string(3000, 'a') + std::string(3000, '7'));
  return out;
}

std::vector<std::string> invalid_utf8() {
  std::vector<std::string> out = {"\xff",
                                  "a\xc3",
                                  "\xe2\x96",
                                  "\xc0\xaf",
                                  "\xed\xa0\x80",
                                  "\xf4\x90\x80\x80",
                                  "ok \x80\x80 \xfe ok",
                                  " \xff 1\xff"};
  Rng rng(7);
  for (int i = 0; i < 50; ++i) {
    std::string bytes(rng.below(40), '\0');
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
    out.push_back(bytes);
  }
  return out;
}

class TokenizerFixture : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ =
      load_tokenizer(kFixtures / (std::string(GetParam()) + ".json"));
};

TEST_P(TokenizerFixture, AgreesWithHuggingFace) {
  for (const Json& entry : read_json(kFixtures / (std::string(GetParam()) + ".cases.json"))) {
    const auto text = entry[0].get<std::string>();
    const auto ids = entry[1].get<std::vector<int>>();
    EXPECT_EQ(tokenizer_->encode(text), ids) << '"' << text << '"';
    EXPECT_EQ(tokenizer_->decode(ids), entry[2].get<std::string>()) << '"' << text << '"';
  }
}

TEST_P(TokenizerFixture, HardTextComesBack) {
  // Bytes that are no UTF-8 are where Hugging Face's library cannot look.
  std::vector<std::string> texts = invalid_utf8();
  for (const std::string& text : hard_texts()) {
    // Special tokens are not text; U+2581 is a space to the SentencePiece kind.
    if (text.find('<') == std::string::npos && text.find("▁") == std::string::npos)
      texts.push_back(text);
  }
  for (const std::string& text : texts) {
    std::string want = text;
    // Metaspace takes a leading space for the one it would put there.
    if (std::string(GetParam()) == "metaspace" && text.starts_with(' ')) want.erase(0, 1);
    if (std::string(GetParam()) == "qwen2") want = normalized(text, NormalForm::nfc);
    EXPECT_EQ(tokenizer_->decode(tokenizer_->encode(text)), want);
  }
}

TEST_P(TokenizerFixture, TokensJoinToTheText) {
  const std::string text = "Hello  naïve 日本 1234 'll\n";
  std::string joined;
  for (const int token : tokenizer_->encode(text)) joined += tokenizer_->decode_token(token);
  if (joined.starts_with(' ')) joined.erase(0, 1);  // the kinds that put a space before
  EXPECT_EQ(joined, text);
}

TEST_P(TokenizerFixture, StrangeTokensStandForNothing) {
  for (const int token : {-1, 1 << 30, tokenizer_->vocab_size()}) {
    EXPECT_EQ(tokenizer_->decode_token(token), "");
    EXPECT_EQ(tokenizer_->decode({&token, 1}), "");
  }
  EXPECT_EQ(tokenizer_->decode({}), "");
}

TEST_P(TokenizerFixture, FilesMakeItAgain) {
  const TemporaryFolder folder;
  for (const auto& [name, text] : tokenizer_->files()) write_text(folder / name, text);
  EXPECT_EQ(load_tokenizer(folder.path())->encode("the cat 12"), tokenizer_->encode("the cat 12"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, TokenizerFixture,
                         ::testing::Values("gpt2", "smollm", "llama3", "qwen2", "llama2",
                                           "metaspace"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Tokenizer, BeginAndEnd) {
  EXPECT_EQ(load_tokenizer(kFixtures / "llama3.json")->bos(), 0);
  EXPECT_EQ(load_tokenizer(kFixtures / "llama2.json")->bos(), 1);
  EXPECT_FALSE(load_tokenizer(kFixtures / "gpt2.json")->bos());
  EXPECT_EQ(load_tokenizer(kFixtures / "gpt2.json")->eos(), 1);  // </s>, by its name

  const TemporaryFolder folder;
  fs::copy_file(kFixtures / "gpt2.json", folder / "tokenizer.json");
  write_text(folder / "tokenizer_config.json",
             R"({"add_bos_token": true, "bos_token": {"content": "</s>"}, "eos_token": "<s>"})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->eos(), 0);
  EXPECT_EQ(tokenizer->files().size(), 2u);
}

// A tokenizer's fixture after a change, in a folder.
void put_tokenizer(const fs::path& folder, const char* fixture, const char* pointer,
                   const Json& value) {
  Json json = read_json(kFixtures / (std::string(fixture) + ".json"));
  json[Json::json_pointer(pointer)] = value;
  write_json(folder / "tokenizer.json", json);
}

// What a normalizer makes of a token's text is found in texts; other files name it as it was.
TEST(Tokenizer, ASpecialTokenMayBeNormalized) {
  const TemporaryFolder folder;
  put_tokenizer(folder.path(), "llama2", "/added_tokens/2/normalized", true);  // </s>
  const auto by_name = load_tokenizer(folder.path());
  EXPECT_EQ(by_name->eos(), 2);
  write_text(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_EQ(tokenizer->eos(), 2);
  const std::vector<int> tokens = tokenizer->encode("the </s> cat");
  EXPECT_EQ(std::ranges::count(tokens, 2), 1);
  EXPECT_EQ(tokenizer->decode(tokens), "the cat");
  EXPECT_EQ(tokenizer->decode(tokens, Special::keep), "the </s> cat");
}

TEST(Tokenizer, SpecialTokensAreShownWhenAskedFor) {
  const auto tokenizer = load_tokenizer(kFixtures / "llama3.json");
  const std::vector<int> tokens = tokenizer->encode("<s>the cat</s>");
  EXPECT_EQ(tokenizer->decode(tokens), "the cat");
  EXPECT_EQ(tokenizer->decode(tokens, Special::keep), "<s>the cat</s>");
  EXPECT_EQ(tokenizer->decode_token(0), "");
  EXPECT_EQ(tokenizer->decode_token(0, Special::keep), "<s>");
}

using Ids = std::vector<int>;

TEST(Tokenizer, EveryEndThatAModelsFilesNameCounts) {
  const TemporaryFolder folder;
  fs::copy_file(kFixtures / "llama3.json", folder / "tokenizer.json");
  const auto ends = [&] { return load_tokenizer(folder.path())->ends(); };
  EXPECT_EQ(ends(), Ids{1});  // </s>, by its name
  write_text(folder / "config.json", R"({"eos_token_id": 7, "bos_token_id": 5})");
  EXPECT_EQ(ends(), Ids{7});
  EXPECT_EQ(load_tokenizer(folder / "tokenizer.json")->ends(), Ids{7});
  write_text(folder / "generation_config.json", R"({"eos_token_id": [9, 7, 8]})");
  EXPECT_EQ(ends(), (Ids{7, 9, 8}));
  write_text(folder / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(ends(), (Ids{1, 7, 9, 8}));
  EXPECT_EQ(load_tokenizer(folder.path())->eos(), 1);
  EXPECT_EQ(load_tokenizer(folder.path())->named_bos(), 0);  // the template's
  write_text(folder / "config.json", R"({"eos_token_id": null})");
  write_text(folder / "generation_config.json", R"({"eos_token_id": []})");
  EXPECT_EQ(ends(), Ids{1});
  for (const char* wrong : {"-1", "1.5", "\"</s>\"", "[2, -1]", "{}"}) {
    write_text(folder / "generation_config.json",
               R"({"eos_token_id": )" + std::string(wrong) + "}");
    expect_error(ends, {"generation_config.json", "eos_token_id"});
  }
}

TEST(Tokenizer, ABeginningMayBeNamedAndNotUsed) {
  const TemporaryFolder folder;
  fs::copy_file(kFixtures / "gpt2.json", folder / "tokenizer.json");
  write_text(folder / "config.json", R"({"bos_token_id": 0, "eos_token_id": 400})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_FALSE(tokenizer->bos());
  EXPECT_EQ(tokenizer->named_bos(), 0);
  EXPECT_EQ(tokenizer->ends(), Ids{400});
  EXPECT_FALSE(tokenizer->eos()) << "a token that the tokenizer has not cannot follow a text";
}

TEST(Tokenizer, OnlyASpecialTokenEndsTextsByItsName) {
  const TemporaryFolder folder;
  put_tokenizer(folder.path(), "gpt2", "/added_tokens", Json::array());
  EXPECT_TRUE(load_tokenizer(folder.path())->ends().empty());  // </s> is a word like any other
}

TEST(Tokenizer, BytesAreTokens) {
  const auto bytes = make_byte_tokenizer();
  EXPECT_EQ(bytes->vocab_size(), 256);
  EXPECT_EQ(bytes->encode("a\xff"), (std::vector<int>{'a', 255}));
  std::vector<std::string> texts = hard_texts();
  for (const std::string& text : invalid_utf8()) texts.push_back(text);
  // The file it writes beside a model says the same.
  const TemporaryFolder folder;
  write_text(folder / "tokenizer.json", bytes->files().at("tokenizer.json"));
  const auto loaded = load_tokenizer(folder.path());
  for (const std::string& text : texts) {
    EXPECT_EQ(bytes->decode(bytes->encode(text)), text);
    EXPECT_EQ(loaded->encode(text), bytes->encode(text));
    EXPECT_EQ(loaded->decode(bytes->encode(text)), text);
  }
}

TEST(Tokenizer, WhatIsNotKnownIsRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](const char* fixture, const char* pointer, const Json& value,
                           std::initializer_list<std::string> parts) {
    Json json = read_json(kFixtures / (std::string(fixture) + ".json"));
    json[Json::json_pointer(pointer)] = value;
    write_json(folder / "tokenizer.json", json);
    expect_error([&] { load_tokenizer(folder.path()); }, {"tokenizer.json"});
    expect_error([&] { load_tokenizer(folder.path()); }, parts);
  };
  refused("gpt2", "/model/type", "Unigram", {"model", "Unigram", "not supported"});
  refused("gpt2", "/model/end_of_word_suffix", "</w>", {"end_of_word_suffix"});
  refused("gpt2", "/normalizer", {{"type", "Lowercase"}}, {"normalizer", "Lowercase"});
  refused("gpt2", "/pre_tokenizer/type", "Whitespace", {"pre_tokenizer", "Whitespace"});
  refused("gpt2", "/decoder/type", "WordPiece", {"decoder", "WordPiece"});
  refused("gpt2", "/post_processor", {{"type", "BertProcessing"}}, {"BertProcessing"});
  refused("llama3", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\w+", {"\\w+"});
  refused("llama3", "/pre_tokenizer/pretokenizers/0/behavior", "Removed", {"Removed"});
  refused("llama3", "/added_tokens/0/single_word", true, {"added_tokens[0]", "single_word"});
  refused("llama2", "/normalizer/normalizers/1/pattern", {{"Regex", "x"}}, {"normalizers[1]"});
  refused("metaspace", "/pre_tokenizer/prepend_scheme", "often", {"often"});
}

TEST(Tokenizer, DamagedFilesAreNamed) {
  const TemporaryFolder folder;
  const auto refused = [&](const char* pointer, const Json& value,
                           std::initializer_list<std::string> parts) {
    Json json = read_json(kFixtures / "gpt2.json");
    json[Json::json_pointer(pointer)] = value;
    write_json(folder / "tokenizer.json", json);
    expect_error([&] { load_tokenizer(folder.path()); }, parts);
  };
  refused("/model", nullptr, {"no \"model\""});
  refused("/model/vocab", Json::array(), {"vocab"});
  refused("/model/vocab/a", -1, {"\"a\"", "whole number from 0"});
  refused("/model/vocab/a", 4294967296, {"\"a\"", "whole number from 0"});
  refused("/model/merges", Json::array({Json::array({"a", "never"})}), {"merge 0", "never"});
  refused("/model/merges", Json::array({"ab"}), {"merge 0", "pair"});
  refused("/model/merges", Json::array({Json::array({"a", 3})}), {"merge 0", "pair"});
  refused("/model/unk_token", "<none>", {"unk_token", "<none>"});
  refused("/added_tokens/0/id", "x", {"added_tokens[0]", "\"id\""});
  refused("/added_tokens", 3, {"added_tokens"});
  write_text(folder / "tokenizer.json", "{\"model\": [[[[");
  expect_error([&] { load_tokenizer(folder.path()); }, {"tokenizer.json", "not valid JSON"});
  expect_error([&] { load_tokenizer(folder / "none"); }, {"none", "No such file"});
}

TEST(Unicode, ClassesAndUtf8) {
  EXPECT_EQ(class_of('a'), CharClass::letter);
  EXPECT_EQ(class_of(U'日'), CharClass::letter);
  EXPECT_EQ(class_of(U'٣'), CharClass::number);
  EXPECT_EQ(class_of(U'½'), CharClass::number);
  EXPECT_EQ(class_of(0x3000), CharClass::space);
  EXPECT_EQ(class_of(0x200b), CharClass::other);
  EXPECT_EQ(class_of(0x301), CharClass::other);
  EXPECT_EQ(class_of(0), CharClass::other);
  EXPECT_EQ(class_of(0x10ffff), CharClass::other);
  EXPECT_EQ(class_of(kInvalidChar), CharClass::other);
  for (char32_t c = 0; c <= 0x10ffff; c += c < 0x20000 ? 1 : 257) {
    if (c >= 0xd800 && c < 0xe000) continue;
    const std::string text = to_utf8(c);
    const Utf8Char back = first_char(text);
    ASSERT_TRUE(back.code == c && back.bytes == static_cast<int>(text.size())) << uint32_t{c};
  }
}

// Texts and their four forms.
std::vector<Json> normal_forms() { return read_json(kFixtures / "unicode.json")["forms"]; }

// Against Python's unicodedata (fixtures/make_unicode.py).
TEST(Unicode, EveryCharacterHasItsClass) {
  const Json versions = read_json(kFixtures / "unicode.json")["classes"];
  const std::string version = unicode_version();
  if (!versions.contains(version))
    GTEST_SKIP() << "Unicode " << version << " is not among the fixtures: add it";
  uint64_t hash = 0xcbf29ce484222325u;
  for (char32_t c = 0; c <= 0x10ffff; ++c)
    hash = (hash ^ static_cast<uint64_t>(class_of(c))) * 0x100000001b3u;
  EXPECT_EQ(fmt::format("{:016x}", hash), versions[version].get<std::string>());
}

TEST(Unicode, NormalForms) {
  using enum NormalForm;
  for (const Json& entry : normal_forms()) {
    const auto text = entry[0].get<std::string>();
    size_t i = 1;
    for (const NormalForm form : {nfc, nfd, nfkc, nfkd}) {
      const auto want = entry[i++].get<std::string>();
      EXPECT_EQ(normalized(text, form), want) << entry;
      EXPECT_EQ(normalized(want, form), want) << entry;
      // What is no UTF-8 stays, and nothing joins across it.
      EXPECT_EQ(normalized("\xff" + text + "\xe2\x96", form), "\xff" + want + "\xe2\x96") << entry;
    }
  }
}

// Marks in the wrong order, many of them, take no time that grows with their square.
TEST(Unicode, ManyMarksAreSorted) {
  constexpr int kMarks = 300'000;
  std::string text, want;
  for (int i = 0; i < kMarks; ++i) text += "\u0307\u0323";
  for (const char* mark : {"\u0323", "\u0307"}) {
    for (int i = 0; i < kMarks; ++i) want += mark;
  }
  EXPECT_TRUE(normalized(text, NormalForm::nfd) == want);
}

// Where a text may be cut, its parts' normal forms are those of the whole.
TEST(Unicode, CutsDoNotChangeNormalForms) {
  int cuts = 0;
  for (const Json& entry : normal_forms()) {
    const auto text = entry[0].get<std::string>();
    for (size_t at = 0, before = 0; at < text.size();) {
      const Utf8Char c = first_char(std::string_view(text).substr(at));
      if (at > 0 &&
          may_cut_between(first_char(std::string_view(text).substr(before)).code, c.code)) {
        ++cuts;
        for (const size_t form : {1, 2}) {
          const NormalForm f = form == 1 ? NormalForm::nfc : NormalForm::nfd;
          EXPECT_EQ(normalized(text.substr(0, at), f) + normalized(text.substr(at), f),
                    entry[form].get<std::string>());
        }
      }
      before = at;
      at += static_cast<size_t>(c.bytes);
    }
  }
  EXPECT_GT(cuts, 100);
}

TEST(SplitPatterns, OnlyKnownOnesAreFound) {
  EXPECT_EQ(find_split_pattern(""), nullptr);
  EXPECT_EQ(find_split_pattern("\\s+"), nullptr);
  EXPECT_EQ(find_split_pattern(
                R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"),
            &first_gpt2_piece);
}

}  // namespace
}  // namespace cria
