// cria tokenize: the tokens of a text, and tokens back to their text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/format.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/table.h"
#include "cli/command.h"
#include "model/tokenizer.h"
#include "model/unicode.h"

namespace cria {
namespace {

struct TokenizeCommand {
  std::string text, file, tokenizer, model, json;
  bool has_text = false, decode = false, ids = false, special = false;
};

std::string standard_input() {
  std::string out;
  char block[1 << 16];
  while (const size_t count = std::fread(block, 1, sizeof block, stdin)) out.append(block, count);
  if (std::ferror(stdin)) fail("standard input cannot be read: give TEXT or --file FILE");
  return out;
}

std::string input_of(const TokenizeCommand& o) {
  if (o.has_text) return o.text;
  return o.file.empty() ? standard_input() : std::string(MappedFile(o.file).text());
}

std::vector<int> parse_ids(const std::string& text) {
  std::vector<int> out;
  constexpr std::string_view kBetween = " \t\r\n,[]";
  for (size_t at = text.find_first_not_of(kBetween); at != std::string::npos;
       at = text.find_first_not_of(kBetween, at)) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    int id = -1;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || rest != text.data() + end || id < 0)
      fail_f("\"{}\" is no token: --decode takes whole numbers from 0, such as 1 2 3",
             text.substr(at, std::min<size_t>(end - at, 40)));
    out.push_back(id);
    at = end;
  }
  return out;
}

// For a terminal: in quotes, with what is not to be seen, and bytes that are no text, as escapes;
// with `exact` all bytes beyond ASCII, because different ones may look the same.
std::string shown(std::string_view text, bool exact = false) {
  std::string out = "\"";
  for (; !text.empty();) {
    const Utf8Char c = first_char(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(c.bytes));
    if (c.code == '\n')
      out += "\\n";
    else if (c.code == '\t')
      out += "\\t";
    else if (c.code == '\r')
      out += "\\r";
    else if (c.code == '"' || c.code == '\\')
      out += {'\\', static_cast<char>(c.code)};
    else if (c.code < ' ' || (c.code >= 0x7f && (exact || c.code < 0xa0 || c.code == kInvalidChar)))
      for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    else
      out += bytes;
    text.remove_prefix(bytes.size());
  }
  return out + "\"";
}

std::string name_of(const Tokenizer& tokenizer, int token) {
  return fmt::format("{} {}", token, shown(tokenizer.decode_token(token, Special::keep)));
}

// How many tokens there are, and what stands before and after a text.
void print_vocabulary(const Tokenizer& tokenizer) {
  fmt::print("{} tokens", tokenizer.vocab_size());
  if (const auto bos = tokenizer.bos())
    fmt::print("; a prompt begins with {}", name_of(tokenizer, *bos));
  const char* ends = "; a text ends with";
  for (const int token : tokenizer.ends()) {
    fmt::print("{} {}", ends, name_of(tokenizer, token));
    ends = " or";
  }
  fmt::print("\n\n");
}

// What comes back of a text, in a sentence.
std::string what_comes_back(std::string_view text, std::string_view back) {
  if (text == back) return "the text comes back byte for byte";
  const auto [a, b] = std::ranges::mismatch(text, back);
  const auto at = static_cast<size_t>(a - text.begin());
  constexpr size_t kSome = 12;
  return fmt::format("the text comes back changed from byte {} on: {} is {}", at,
                     shown(text.substr(at, kSome), true), shown(back.substr(at, kSome), true));
}

int run_tokenize(const TokenizeCommand& o) {
  if (o.tokenizer.empty() == o.model.empty())
    fail("one of --tokenizer and --model is needed: a tokenizer.json, or a folder that has one");
  if (o.ids && o.decode) fail("--ids prints numbers and --decode text: give one of them");
  if (o.special && !o.decode) fail("--special is for --decode: without it, every token is shown");
  const auto tokenizer = load_tokenizer(o.tokenizer.empty() ? o.model : o.tokenizer);
  const std::string input = input_of(o);
  const std::vector<int> tokens = o.decode ? parse_ids(input) : tokenizer->encode(input);
  for (const int token : tokens) {
    if (token >= tokenizer->vocab_size())
      fail_f("token {} is none of the tokenizer's {}", token, tokenizer->vocab_size());
  }
  const std::string text =
      tokenizer->decode(tokens, o.special || !o.decode ? Special::keep : Special::drop);
  if (!o.json.empty()) {
    std::vector<std::string> pieces;
    for (const int token : tokens) pieces.push_back(tokenizer->decode_token(token, Special::keep));
    write_json(o.json, {{"tokens", tokens},
                        {"pieces", pieces},
                        {"text", text},
                        {"bos", tokenizer->bos() ? Json(*tokenizer->bos()) : Json()},
                        {"ends", tokenizer->ends()},
                        {"comes_back", o.decode || text == input}});
  }
  if (o.decode) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  if (o.ids) {
    fmt::print("{}\n", fmt::join(tokens, " "));
    return 0;
  }
  print_vocabulary(*tokenizer);
  Table table({{"at"}, {"token"}, {"piece", Table::Align::left}});
  for (size_t i = 0; i < tokens.size(); ++i)
    table.add_row({std::to_string(i), std::to_string(tokens[i]),
                   shown(tokenizer->decode_token(tokens[i], Special::keep))});
  if (!tokens.empty()) fmt::print("{}\n", table.to_string());
  fmt::print("{} bytes are {} tokens; {}\n", input.size(), tokens.size(),
             what_comes_back(input, text));
  return 0;
}

}  // namespace

void add_tokenize_command(CLI::App& program, Invocation& invocation) {
  auto o = std::make_shared<TokenizeCommand>();
  CLI::App* command =
      program.add_subcommand("tokenize", "Show the tokens of a text, or the text of tokens");
  CLI::Option* text =
      command->add_option("TEXT", o->text, "The text (default: standard input)")->option_text(" ");
  command->add_option("--file", o->file, "A file with the text")
      ->option_text("FILE")
      ->excludes(text);
  command->add_option("--tokenizer", o->tokenizer, "A tokenizer.json, or the folder that it is in")
      ->option_text("FILE");
  command->add_option("--model", o->model, "The same: a model's folder")->option_text("DIR");
  command->add_flag("--ids", o->ids, "Only the tokens' numbers");
  command->add_flag("--decode", o->decode,
                    "The text is tokens' numbers: print what they stand for");
  command->add_flag("--special", o->special, "With --decode: show special tokens, too");
  command
      ->add_option("--json", o->json,
                   "Write numbers, pieces and the text of the tokens to this file")
      ->option_text("FILE");
  command->footer(
      "For example: cria tokenize --model run/latest \"Once upon\"\n"
      "And back: cria tokenize --model run/latest --decode \"72 105\"");
  command->callback([o, text, &invocation] {
    o->has_text = text->count() > 0;
    invocation.exit_code = run_tokenize(*o);
  });
}

}  // namespace cria
