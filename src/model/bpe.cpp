#include "model/bpe.h"

#include <queue>

#include "base/format.h"
#include "model/unicode.h"

namespace cria {
namespace {

uint64_t pair_key(int left, int right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

int token_of(const TextMap& tokens, std::string_view text) {
  const auto it = tokens.find(text);
  return it == tokens.end() ? -1 : it->second;
}

}  // namespace

Bpe::Bpe(TextMap tokens, const std::vector<std::pair<std::string, std::string>>& merges,
         BpeOptions options)
    : tokens_(std::move(tokens)), options_(options) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = options_.byte_level ? std::string(1, static_cast<char>(byte))
                                                 : fmt::format("<0x{:02X}>", byte);
    byte_tokens_.push_back(token_of(tokens_, text));
  }
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const auto& [a, b] = merges[rank];
    const int left = token_of(tokens_, a), right = token_of(tokens_, b);
    const int joined = token_of(tokens_, a + b);
    if (left < 0 || right < 0 || joined < 0) {
      fail_f("merge {} of \"{}\" and \"{}\" uses a token that is not in the vocabulary", rank, a,
             b);
    }
    merges_.try_emplace(pair_key(left, right), Merge{static_cast<int>(rank), joined});
  }
}

const Bpe::Merge* Bpe::find_merge(int left, int right) const {
  const auto it = merges_.find(pair_key(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

void Bpe::append_unknown(std::string_view character, bool& after_unknown,
                         std::vector<int>& out) const {
  bool all_bytes = options_.byte_fallback && !options_.byte_level;
  for (const char c : character) all_bytes &= byte_tokens_[static_cast<uint8_t>(c)] >= 0;
  if (all_bytes) {
    for (const char c : character) out.push_back(byte_tokens_[static_cast<uint8_t>(c)]);
    after_unknown = false;
  } else if (options_.unknown && !(after_unknown && options_.fuse_unknown)) {
    out.push_back(*options_.unknown);
    after_unknown = true;
  }
}

std::vector<int> Bpe::symbols_of(std::string_view word) const {
  std::vector<int> out;
  out.reserve(word.size());
  bool after_unknown = false;
  while (!word.empty()) {
    const size_t bytes = options_.byte_level ? 1 : static_cast<size_t>(first_char(word).bytes);
    const std::string_view symbol = word.substr(0, bytes);
    const int token = options_.byte_level ? byte_tokens_[static_cast<uint8_t>(word[0])]
                                          : token_of(tokens_, symbol);
    if (token >= 0) {
      out.push_back(token);
      after_unknown = false;
    } else {
      append_unknown(symbol, after_unknown, out);
    }
    word.remove_prefix(bytes);
  }
  return out;
}

// Always the pair learnt first, and of equal ones the leftmost. Symbols form a linked list; the
// queue may hold pairs whose ends have merged with others since, which are dropped when they come.
void Bpe::merge(std::vector<int>& symbols) const {
  struct Link {
    int previous, next;
  };
  struct Candidate {
    int rank, at, token;
    bool operator<(const Candidate& other) const {  // the queue gives the largest first
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  constexpr int kGone = -1;
  const int n = static_cast<int>(symbols.size());
  std::vector<Link> links(symbols.size());
  for (int i = 0; i < n; ++i) links[i] = {i - 1, i + 1};
  std::priority_queue<Candidate> queue;
  const auto offer = [&](int at) {
    if (at < 0 || links[at].next >= n) return;
    if (const Merge* m = find_merge(symbols[at], symbols[links[at].next]))
      queue.push({m->rank, at, m->token});
  };
  for (int i = 0; i + 1 < n; ++i) offer(i);

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const int right = links[best.at].next;
    if (symbols[best.at] == kGone || right >= n) continue;
    const Merge* m = find_merge(symbols[best.at], symbols[right]);
    if (m == nullptr || m->token != best.token) continue;
    symbols[best.at] = best.token;
    symbols[right] = kGone;
    links[best.at].next = links[right].next;
    if (links[right].next < n) links[links[right].next].previous = best.at;
    offer(links[best.at].previous);
    offer(best.at);
  }
  std::erase(symbols, kGone);
}

void Bpe::encode(std::string_view word, std::vector<int>& out) const {
  if (options_.whole_words) {
    if (const int token = token_of(tokens_, word); token >= 0) {
      out.push_back(token);
      return;
    }
  }
  std::vector<int> symbols = symbols_of(word);
  if (symbols.size() > 1) merge(symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

}  // namespace cria
