#include "model/tokenizer_hf.h"

#include <charconv>
#include <functional>

#include "base/error.h"

namespace cria {
namespace {

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t found = from.empty() ? std::string_view::npos : text.find(from, at);
    out.append(text.substr(at, found - at));
    if (found == std::string_view::npos) return out;
    out.append(to);
    at = found + from.size();
  }
}

// The byte of "<0x0A>"; -1 for other texts.
int fallback_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return error == std::errc() && end == text.data() + 5 ? byte : -1;
}

struct Decoding {
  std::vector<std::string>& texts;

  void operator()(const ReplaceText& step) const {
    for (std::string& text : texts) text = replaced(text, step.from, step.to);
  }
  void operator()(const BytesOfFallback&) const {
    for (std::string& text : texts) {
      if (const int byte = fallback_byte(text); byte >= 0) text = static_cast<char>(byte);
    }
  }
  void operator()(const FuseTexts&) const {
    std::string joined;
    for (const std::string& text : texts) joined += text;
    texts = {std::move(joined)};
  }
  void operator()(const StripText& step) const {
    for (std::string& text : texts) {
      std::string_view rest = text;
      for (int i = 0; i < step.start && rest.starts_with(step.text); ++i)
        rest.remove_prefix(step.text.size());
      for (int i = 0; i < step.stop && rest.ends_with(step.text); ++i)
        rest.remove_suffix(step.text.size());
      text = std::string(rest);
    }
  }
  void operator()(const SpacesOfMetaspace& step) const {
    for (size_t i = 0; i < texts.size(); ++i)
      texts[i] = replaced(texts[i], step.from, i == 0 && step.drop_first ? "" : " ");
  }
};

class HfTokenizer final : public Tokenizer {
 public:
  explicit HfTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
    ends_ = std::move(parts_.ends);
    files_ = std::move(parts_.files);
  }

  std::vector<int> encode_part(std::string_view text, bool first) const override;
  std::string decode(std::span<const int> tokens, Special special) const override;
  std::string decode_token(int token, Special special) const override;
  int vocab_size() const override { return static_cast<int>(parts_.tokens.size()); }

 private:
  class Encoding;

  std::vector<std::string> texts_of(std::span<const int> tokens, Special special) const;

  TokenizerParts parts_;
};

// One call of encode_part(): where tokens go, and the words already seen in it.
class HfTokenizer::Encoding {
 public:
  explicit Encoding(const TokenizerParts& parts) : parts_(parts) {}

  void add_all(std::string_view text, bool first) {
    for (const TextPart& part : parts_.raw_added.cut(text)) {
      const bool at_start = part.text.data() == text.data();
      if (part.token >= 0)
        tokens_.push_back(part.token);
      else
        add(part.text, !at_start ? Start::piece : first ? Start::text : Start::none);
    }
  }

  std::vector<int> take() { return std::move(tokens_); }

 private:
  // What begins with a piece of text: all of it, the piece, or nothing, because it goes on from a
  // part before.
  enum class Start { text, piece, none };

  void add(std::string_view text, Start start) {
    if (parts_.normalizers.empty()) return add_normalized(text, start);
    add_normalized(normalize(parts_.normalizers, text, start == Start::none), start);
  }

  void add_normalized(std::string_view text, Start start) {
    for (const TextPart& part : parts_.normalized_added.cut(text)) {
      if (part.token >= 0)
        tokens_.push_back(part.token);
      else
        pre_tokenize(part.text, 0, part.text.data() == text.data() ? start : Start::piece);
    }
  }

  void pre_tokenize(std::string_view text, size_t step_index, Start start) {
    if (step_index == parts_.pre_tokenizers.size()) return add_word(text);
    const PreTokenizeStep& step = parts_.pre_tokenizers[step_index];
    std::string changed;
    if (!step.space.empty()) text = changed = replaced(text, " ", step.space);
    using Prefix = PreTokenizeStep::Prefix;
    const bool may_prefix = (step.when == Prefix::always && start != Start::none) ||
                            (step.when == Prefix::first && start == Start::text);
    if (may_prefix && !text.starts_with(step.prefix))
      text = changed = step.prefix + std::string(text);
    while (!text.empty()) {
      const size_t bytes = step.first_piece ? step.first_piece(text) : text.size();
      pre_tokenize(text.substr(0, bytes), step_index + 1, start);
      text.remove_prefix(bytes);
      start = Start::piece;
    }
  }

  void add_word(std::string_view word) {
    constexpr size_t kLongestCached = 64;
    if (word.size() > kLongestCached) return parts_.bpe->encode(word, tokens_);
    const auto it = seen_.find(word);
    if (it != seen_.end()) {
      tokens_.insert(tokens_.end(), it->second.begin(), it->second.end());
      return;
    }
    const size_t before = tokens_.size();
    parts_.bpe->encode(word, tokens_);
    seen_.emplace(
        word, std::vector<int>(tokens_.begin() + static_cast<ptrdiff_t>(before), tokens_.end()));
  }

  const TokenizerParts& parts_;
  std::vector<int> tokens_;
  std::unordered_map<std::string, std::vector<int>, TextHash, std::equal_to<>> seen_;
};

std::vector<int> HfTokenizer::encode_part(std::string_view text, bool first) const {
  Encoding encoding(parts_);
  encoding.add_all(text, first);
  return encoding.take();
}

std::vector<std::string> HfTokenizer::texts_of(std::span<const int> tokens, Special special) const {
  std::vector<std::string> out;
  for (const int token : tokens) {
    const bool known = token >= 0 && token < vocab_size();
    const bool shown = special == Special::keep || !parts_.special.contains(token);
    if (known && shown) out.push_back(parts_.tokens[static_cast<size_t>(token)]);
  }
  return out;
}

std::string HfTokenizer::decode(std::span<const int> tokens, Special special) const {
  std::vector<std::string> texts = texts_of(tokens, special);
  for (const DecodeStep& step : parts_.decoders) std::visit(Decoding{texts}, step);
  Decoding{texts}(FuseTexts());
  return texts[0];
}

// As after another token: what is done to the start and the end of a text is left out.
std::string HfTokenizer::decode_token(int token, Special special) const {
  std::vector<std::string> texts = texts_of({&token, 1}, special);
  for (const DecodeStep& step : parts_.decoders) {
    if (std::holds_alternative<StripText>(step)) continue;
    if (const auto* metaspace = std::get_if<SpacesOfMetaspace>(&step))
      Decoding{texts}(SpacesOfMetaspace{metaspace->from, false});
    else
      std::visit(Decoding{texts}, step);
  }
  Decoding{texts}(FuseTexts());
  return texts[0];
}

}  // namespace

std::string normalize(const std::vector<NormalizeStep>& steps, std::string_view text,
                      bool goes_on) {
  std::string out(text);
  for (const NormalizeStep& step : steps) {
    if (const auto* replace = std::get_if<ReplaceText>(&step))
      out = replaced(out, replace->from, replace->to);
    else if (const auto* form = std::get_if<NormalForm>(&step))
      out = normalized(out, *form);
    else if (!out.empty() && !goes_on)
      out.insert(0, std::get<PrependText>(step).text);
  }
  return out;
}

std::unique_ptr<Tokenizer> make_tokenizer(TokenizerParts parts) {
  require(parts.bpe != nullptr, "make_tokenizer: a BPE is needed");
  return std::make_unique<HfTokenizer>(std::move(parts));
}

}  // namespace cria
