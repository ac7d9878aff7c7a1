#include "fuzz/mutate.h"

#include <string_view>

namespace cria::fuzz {
namespace {

constexpr std::string_view kWords[] = {"{",
                                       "}",
                                       "[",
                                       "]",
                                       "\"",
                                       ",",
                                       ":",
                                       "null",
                                       "true",
                                       "-1",
                                       "0",
                                       "1e999",
                                       "0.5",
                                       "[[[[[[[[[[[[",
                                       "{\"a\":{\"a\":{\"a\":",
                                       "18446744073709551615",
                                       "9223372036854775808",
                                       "4611686018427387904",
                                       "-9223372036854775808",
                                       "2147483648",
                                       "\\u0000",
                                       "\\ud800",
                                       "\xff",
                                       "\xc3\x28",
                                       "F32",
                                       "BF16",
                                       "I64",
                                       "data_offsets",
                                       "__metadata__",
                                       "../",
                                       "<0xFF>",
                                       "\u2581"};

// Mostly small, sometimes anywhere in [0, bound].
size_t some_size(size_t bound, Rng& rng) {
  const size_t limit = rng.below(4) > 0 ? std::min<size_t>(bound, 16) : bound;
  return rng.below(static_cast<uint32_t>(limit + 1));
}

size_t some_place(const std::string& bytes, Rng& rng) {
  return rng.below(static_cast<uint32_t>(bytes.size() + 1));
}

void mutate_once(std::string& bytes, Rng& rng) {
  const size_t at = some_place(bytes, rng);
  const size_t count = some_size(bytes.size() - at, rng);
  switch (rng.below(7)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << rng.below(8)));
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<char>(rng.below(256));
      break;
    case 2:
      bytes.erase(at, count);
      break;
    case 3:
      bytes.insert(some_place(bytes, rng), bytes.substr(at, count));
      break;
    case 4:
      bytes.insert(at, kWords[rng.below(std::size(kWords))]);
      break;
    case 5: {
      const std::string_view word = kWords[rng.below(std::size(kWords))];
      bytes.replace(at, std::min(word.size(), bytes.size() - at), word);
      break;
    }
    default:
      if (rng.below(4) == 0) bytes.resize(at);
  }
}

Json some_value(Rng& rng) {
  switch (rng.below(14)) {
    case 0:
      return nullptr;
    case 1:
      return rng.below(2) == 0;
    case 2:
      return -1;
    case 3:
      return rng.below(300);
    case 4:
      return UINT64_MAX;
    case 5:
      return INT64_MIN;
    case 6:
      return uint64_t{1} << rng.below(64);
    case 7:
      return 0.5;
    case 8:
      return 1e308;
    case 9:
      return "";
    case 10:
      return std::string(kWords[rng.below(20)]);
    case 11:
      return Json::array();
    case 12:
      return Json::object();
    default:
      return Json::array({rng.below(9), rng.below(9)});
  }
}

// A value somewhere in the tree: down by chance until a leaf, or chance says to stop.
Json& some_node(Json& root, Rng& rng) {
  Json* node = &root;
  while (node->is_structured() && !node->empty() && rng.below(5) > 0) {
    auto it = node->begin();
    std::advance(it, rng.below(static_cast<uint32_t>(node->size())));
    node = &*it;
  }
  return *node;
}

void mutate_once(Json& root, Rng& rng) {
  Json& node = some_node(root, rng);
  switch (rng.below(5)) {
    case 0: {
      const Json copy = some_node(root, rng);  // a copy first: one may hold the other
      node = copy;
      break;
    }
    case 1:
      if (node.is_structured() && !node.empty()) {
        auto it = node.begin();
        std::advance(it, rng.below(static_cast<uint32_t>(node.size())));
        node.erase(it);
      }
      break;
    case 2:
      if (node.is_object()) node[std::string(kWords[rng.below(8)])] = some_value(rng);
      if (node.is_array()) node.push_back(some_value(rng));
      break;
    default:
      node = some_value(rng);
  }
}

}  // namespace

std::string mutate_bytes(std::string bytes, Rng& rng) {
  for (uint32_t n = 1 + rng.below(4); n > 0; --n) mutate_once(bytes, rng);
  return bytes;
}

Json mutate_json(Json json, Rng& rng) {
  for (uint32_t n = 1 + rng.below(3); n > 0; --n) mutate_once(json, rng);
  return json;
}

}  // namespace cria::fuzz
