// Reads tokenizer.json into the steps of tokenizer_hf.h. What is not known is refused by name,
// because a step left out would change tokens silently.
#include <algorithm>

#include "base/json_fields.h"
#include "base/mapped_file.h"
#include "model/byte_alphabet.h"
#include "model/tokenizer_hf.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxTokens = 1 << 20;
constexpr size_t kMaxSteps = 32;
constexpr int kMaxStrip = 1000;

using Node = JsonFields<JsonMap>;

[[noreturn]] void refuse(const Node& node, const std::string& what) {
  fail_f("{}: {} is not supported; use a tokenizer of the Llama, GPT-2, SmolLM or Qwen 2 kind",
         node.where(), what);
}
[[noreturn]] void refuse_type(const Node& node) {
  refuse(node, "the type \"" + node.text("type", "") + "\"");
}

int token_id(const Node& node, const JsonMap& value, std::string_view name) {
  return node.whole_of(value, name, 0, kMaxTokens - 1);
}

void check_steps(size_t count, const Node& node) {
  if (count > kMaxSteps) fail_f("{} has more than {} steps", node.where(), kMaxSteps);
}

ReplaceText read_replace(const Node& node) {
  const Node pattern = node.child("pattern");
  if (!pattern.has("String")) refuse(node, "a pattern that is no plain string");
  return {pattern.text("String"), node.text("content")};
}

std::optional<NormalForm> normal_form(std::string_view name) {
  if (name == "NFC") return NormalForm::nfc;
  if (name == "NFD") return NormalForm::nfd;
  if (name == "NFKC") return NormalForm::nfkc;
  if (name == "NFKD") return NormalForm::nfkd;
  return std::nullopt;
}

void read_normalizer(const Node& node, std::vector<NormalizeStep>& out) {
  const std::string type = node.text("type");
  if (type == "Sequence")
    for (const Node& part : node.children("normalizers")) read_normalizer(part, out);
  else if (type == "Prepend")
    out.push_back(PrependText{node.text("prepend")});
  else if (type == "Replace")
    out.push_back(read_replace(node));
  else if (const auto form = normal_form(type))
    out.push_back(*form);
  else
    refuse_type(node);
  check_steps(out.size(), node);
}

PreTokenizeStep read_metaspace(const Node& node) {
  using Prefix = PreTokenizeStep::Prefix;
  // Files of before prepend_scheme have add_prefix_space.
  const bool add = node.flag("add_prefix_space", true);
  const std::string scheme = node.text("prepend_scheme", add ? "always" : "never");
  const std::string replacement = node.text("replacement");
  if (replacement != "\u2581") refuse(node, "the replacement \"" + replacement + "\"");
  PreTokenizeStep step{.space = replacement, .prefix = replacement};
  if (scheme == "always" || scheme == "first")
    step.when = scheme == "always" ? Prefix::always : Prefix::first;
  else if (scheme != "never")
    refuse(node, "the prepend_scheme \"" + scheme + "\"");
  if (node.flag("split", true)) step.first_piece = first_metaspace_piece;
  return step;
}

PreTokenizeStep read_split(const Node& node) {
  // The patterns match every character, so that matches kept and gaps removed come to the same.
  const std::string behavior = node.text("behavior");
  const bool inverted = node.flag("invert", false);
  if (!(behavior == "Isolated" && !inverted) && !(behavior == "Removed" && inverted))
    refuse(node, "the split behavior \"" + behavior + "\"");
  const Node pattern = node.child("pattern");
  const std::string regex = pattern.text("Regex", "");
  const FirstPiece first_piece = find_split_pattern(regex);
  if (first_piece == nullptr) refuse(node, "the split pattern \"" + regex + "\"");
  return {.first_piece = first_piece};
}

void read_pre_tokenizer(const Node& node, std::vector<PreTokenizeStep>& out, bool& byte_level) {
  const std::string type = node.text("type");
  if (byte_level) refuse(node, "a pre-tokenizer after ByteLevel");
  if (type == "Sequence") {
    for (const Node& part : node.children("pretokenizers"))
      read_pre_tokenizer(part, out, byte_level);
  } else if (type == "Split") {
    out.push_back(read_split(node));
  } else if (type == "Digits") {
    const bool single = node.flag("individual_digits", false);
    out.push_back({.first_piece = single ? first_digit_or_rest : first_digits_or_rest});
  } else if (type == "Metaspace") {
    out.push_back(read_metaspace(node));
  } else if (type == "ByteLevel") {
    byte_level = true;
    PreTokenizeStep step{.prefix = " "};
    if (node.flag("add_prefix_space", true)) step.when = PreTokenizeStep::Prefix::always;
    if (node.flag("use_regex", true)) step.first_piece = first_gpt2_piece;
    out.push_back(step);
  } else {
    refuse_type(node);
  }
  check_steps(out.size(), node);
}

void read_decoder(const Node& node, bool byte_level, std::vector<DecodeStep>& out) {
  const std::string type = node.text("type");
  if (byte_level != (type == "ByteLevel")) refuse_type(node);
  if (byte_level) return;  // tokens are kept as bytes already
  if (type == "Sequence") {
    for (const Node& part : node.children("decoders")) read_decoder(part, byte_level, out);
  } else if (type == "Replace") {
    out.push_back(read_replace(node));
  } else if (type == "ByteFallback") {
    out.push_back(BytesOfFallback());
  } else if (type == "Fuse") {
    out.push_back(FuseTexts());
  } else if (type == "Strip") {
    const StripText step{node.text("content"), node.whole("start", 0, kMaxStrip),
                         node.whole("stop", 0, kMaxStrip)};
    if (step.text.empty()) refuse(node, "an empty content");
    out.push_back(step);
  } else if (type == "Metaspace") {
    const PreTokenizeStep step = read_metaspace(node);
    out.push_back(SpacesOfMetaspace{step.prefix, step.when != PreTokenizeStep::Prefix::never});
  } else {
    refuse_type(node);
  }
  check_steps(out.size(), node);
}

// Puts a token under its id; ids may leave gaps.
void put_token(int id, std::string text, std::vector<std::string>& tokens) {
  if (static_cast<size_t>(id) >= tokens.size()) tokens.resize(static_cast<size_t>(id) + 1);
  tokens[static_cast<size_t>(id)] = std::move(text);
}

std::vector<std::pair<std::string, std::string>> read_merges(const Node& model, bool byte_level) {
  const JsonMap& list = model.need("merges");
  if (!list.is_array()) fail_f("{}: \"merges\" must be a list", model.where());
  std::vector<std::pair<std::string, std::string>> out;
  for (const JsonMap& entry : list) {
    std::string left, right;
    if (entry.is_string()) {  // "a b"; newer files have ["a", "b"]
      const auto& both = entry.get_ref<const std::string&>();
      const size_t space = std::min(both.find(' '), both.size());
      left = both.substr(0, space);
      right = both.substr(std::min(space + 1, both.size()));
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() &&
               entry[1].is_string()) {
      left = entry[0].get<std::string>();
      right = entry[1].get<std::string>();
    }
    if (left.empty() || right.empty())
      fail_f("{}: merge {} is not a pair of tokens", model.where(), out.size());
    if (byte_level) {
      left = bytes_of_symbols(left).value_or(left);
      right = bytes_of_symbols(right).value_or(right);
    }
    out.emplace_back(std::move(left), std::move(right));
  }
  return out;
}

void read_model(const Node& model, bool byte_level, TokenizerParts& parts) {
  if (model.text("type", "BPE") != "BPE") refuse_type(model);
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!model.text(affix, "").empty()) refuse(model, affix);
  }
  const JsonMap& vocab = model.need("vocab");
  if (!vocab.is_object()) fail_f("{}: \"vocab\" must be an object", model.where());
  TextMap ids;
  for (const auto& [text, value] : vocab.items()) {
    const int id = token_id(model, value, text);
    const auto bytes = byte_level ? bytes_of_symbols(text) : std::nullopt;
    // In a byte-level vocabulary a text of other characters cannot be reached by merging.
    if (!byte_level || bytes) ids.emplace(bytes.value_or(text), id);
    put_token(id, bytes.value_or(text), parts.tokens);
  }
  BpeOptions options{.byte_level = byte_level,
                     .byte_fallback = model.flag("byte_fallback", false),
                     .fuse_unknown = model.flag("fuse_unk", false),
                     .whole_words = model.flag("ignore_merges", false)};
  if (const std::string unknown = model.text("unk_token", ""); !unknown.empty()) {
    const auto it = vocab.find(unknown);
    if (it == vocab.end())
      fail_f("{}: the unk_token \"{}\" is not in the vocabulary", model.where(), unknown);
    options.unknown = token_id(model, *it, unknown);
  }
  const auto merges = read_merges(model, byte_level);
  try {
    parts.bpe = std::make_unique<const Bpe>(std::move(ids), merges, options);
  } catch (const Error& error) {
    fail_f("{}: {}", model.where(), error.what());
  }
}

void read_added_tokens(const Node& root, TokenizerParts& parts) {
  std::vector<AddedToken> raw, normalized;
  for (const Node& node : root.children("added_tokens")) {
    if (node.flag("single_word", false)) refuse(node, "single_word");
    const std::string text = node.text("content");
    AddedToken token{.id = node.whole("id", 0, kMaxTokens - 1),
                     .text = text,
                     .strip_left = node.flag("lstrip", false),
                     .strip_right = node.flag("rstrip", false)};
    const bool special = node.flag("special", false);
    const bool is_normalized = node.flag("normalized", !special);
    parts.added.try_emplace(text, token.id);  // other files know it by this text, whatever follows
    if (is_normalized) token.text = normalize(parts.normalizers, text);
    if (special) parts.special.insert(token.id);
    put_token(token.id, token.text, parts.tokens);
    (is_normalized ? normalized : raw).push_back(std::move(token));
  }
  parts.raw_added = AddedTokens(std::move(raw));
  parts.normalized_added = AddedTokens(std::move(normalized));
}

// The tokens that a template puts before and after a text.
void read_post_processor(const Node& node, TokenizerParts& parts) {
  const std::string type = node.text("type");
  if (type == "ByteLevel") return;  // it corrects offsets, which cria does not give
  if (type == "Sequence") {
    for (const Node& part : node.children("processors")) read_post_processor(part, parts);
    return;
  }
  if (type != "TemplateProcessing") refuse_type(node);
  bool after_text = false;
  for (const Node& item : node.children("single")) {
    if (item.has("Sequence")) {
      after_text = true;
      continue;
    }
    const std::string name = item.child("SpecialToken").text("id");
    const Node token = node.child("special_tokens").child(name);
    const JsonMap& ids = token.need("ids");
    if (!ids.is_array() || ids.size() != 1) refuse(token, "other than one id");
    const int last = static_cast<int>(parts.tokens.size()) - 1;
    const int id = token.whole_of(ids[0], "ids", 0, std::max(last, 0));
    if (after_text)
      parts.ends.ends = {id};
    else
      parts.ends.bos = id;
  }
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const fs::path main = is_folder ? path / "tokenizer.json" : path;
  if (is_folder && !fs::exists(main, ignored))
    fail_f("{} has no tokenizer.json, and its tokens mean nothing without: put the model's there",
           path.string());
  TokenizerParts parts;
  parts.files["tokenizer.json"] = std::string(MappedFile(main).text());
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json", "generation_config.json"}) {
    const fs::path beside = main.parent_path() / name;
    if (fs::exists(beside, ignored)) parts.files[name] = read_text(beside);
  }

  const std::string where = main.string();
  const JsonMap json = parse_json_map(parts.files["tokenizer.json"], where);
  const Node root(json, where);
  bool byte_level = false;
  if (const auto node = root.optional_child("normalizer"))
    read_normalizer(*node, parts.normalizers);
  if (const auto node = root.optional_child("pre_tokenizer"))
    read_pre_tokenizer(*node, parts.pre_tokenizers, byte_level);
  if (const auto node = root.optional_child("decoder"))
    read_decoder(*node, byte_level, parts.decoders);
  read_model(root.child("model"), byte_level, parts);
  read_added_tokens(root, parts);
  if (const auto node = root.optional_child("post_processor")) read_post_processor(*node, parts);
  if (parts.tokens.empty()) fail_f("{} has no tokens", where);
  parts.ends = read_text_ends(main.parent_path(), parts);
  const bool no_ends = parts.ends.ends.empty() && !parts.ends.named_bos;
  if (auto bytes = make_byte_tokenizer(); no_ends && bytes->files() == parts.files) return bytes;
  return make_tokenizer(std::move(parts));
}

}  // namespace cria
