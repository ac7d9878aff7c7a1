// Which tokens begin and end a text, from the files of a model: everything that any of them names
// as an end is one, the tokenizer's own first.
#include <algorithm>

#include "base/json_fields.h"
#include "model/tokenizer_hf.h"

namespace cria {
namespace {

namespace fs = std::filesystem;
using Node = JsonFields<JsonMap>;

constexpr int kMaxId = (1 << 24) - 1;  // as large as a vocabulary may be

void add(std::vector<int>& ends, std::optional<int> token) {
  if (token && std::ranges::find(ends, *token) == ends.end()) ends.push_back(*token);
}

// An added token, or else one of the vocabulary.
std::optional<int> find_token(const TokenizerParts& parts, const std::string& text) {
  if (const auto it = parts.added.find(text); it != parts.added.end()) return it->second;
  const auto it = std::ranges::find(parts.tokens, text);
  if (it == parts.tokens.end() || text.empty()) return std::nullopt;
  return static_cast<int>(it - parts.tokens.begin());
}

// "eos_token": "</s>" or {"content": "</s>", ...}.
std::optional<int> named_token(const Node& config, const char* key, const TokenizerParts& parts) {
  const JsonMap* value = config.find(key);
  if (value == nullptr) return std::nullopt;
  return find_token(parts,
                    value->is_object() ? config.child(key).text("content") : config.text(key));
}

// What an older special_tokens_map.json says counts where tokenizer_config.json says nothing.
void read_names(std::initializer_list<Node> configs, const TokenizerParts& parts, TextEnds& out) {
  std::optional<int> bos, eos;
  bool adds_bos = false;
  for (const Node& config : configs) {
    if (!bos) bos = named_token(config, "bos_token", parts);
    if (!eos) eos = named_token(config, "eos_token", parts);
    adds_bos |= config.flag("add_bos_token", false);
  }
  if (!out.bos && adds_bos) out.bos = bos;
  if (!out.named_bos) out.named_bos = out.bos ? out.bos : bos;
  add(out.ends, eos);
}

// "eos_token_id": 2, or a list.
void read_ids(const Node& config, TextEnds& out) {
  if (!out.named_bos && config.has("bos_token_id"))
    out.named_bos = config.whole("bos_token_id", 0, kMaxId);
  const JsonMap* eos = config.find("eos_token_id");
  if (eos == nullptr) return;
  if (!eos->is_array()) return add(out.ends, config.whole("eos_token_id", 0, kMaxId));
  for (const JsonMap& id : *eos) add(out.ends, config.whole_of(id, "eos_token_id", 0, kMaxId));
}

}  // namespace

TextEnds read_text_ends(const fs::path& folder, const TokenizerParts& parts) {
  TextEnds out = parts.ends;
  out.named_bos = out.bos;
  const JsonMap nothing = JsonMap::object();
  std::map<std::string, JsonMap> read;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json", "config.json",
                           "generation_config.json"}) {
    std::error_code ignored;
    const auto kept = parts.files.find(name);
    if (kept == parts.files.end() && !fs::exists(folder / name, ignored)) continue;
    const std::string where = (folder / name).string();
    read[name] = parse_json_map(kept != parts.files.end() ? kept->second : read_text(where), where);
  }
  const auto fields = [&](const char* name) {
    const auto it = read.find(name);
    return it == read.end() ? Node(nothing, name) : Node(it->second, (folder / name).string());
  };
  read_names({fields("tokenizer_config.json"), fields("special_tokens_map.json")}, parts, out);
  read_ids(fields("config.json"), out);
  read_ids(fields("generation_config.json"), out);
  for (const char* usual : {"</s>", "<|end_of_text|>", "<|endoftext|>"}) {
    const auto token = parts.added.find(usual);
    if (out.ends.empty() && token != parts.added.end() && parts.special.contains(token->second))
      out.ends.push_back(token->second);
  }
  return out;
}

}  // namespace cria
