#include "base/nearest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace cria {
namespace {

constexpr size_t kFewestLetters = 2;  // of a word that others may begin with

// Levenshtein's distance: how many letters differ.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t corner = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row.back();
}

// Whether the words begin alike up to the end of the shorter one.
bool continues(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return a.size() >= kFewestLetters && b.starts_with(a);
}

// Whether `part` is one or more whole parts of `whole`, at its end: those at its beginning continue
// it.
bool ends_with_part(std::string_view whole, std::string_view part) {
  return whole.size() > part.size() && whole.ends_with(part) &&
         whole[whole.size() - part.size() - 1] == '-';
}

bool contain_each_other(std::string_view a, std::string_view b) {
  return continues(a, b) || ends_with_part(a, b) || ends_with_part(b, a);
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  // One that contains the other is nearer than one that is spelt alike.
  std::pair<bool, size_t> least;
  const std::string* nearest = nullptr;
  for (const std::string& candidate : known) {
    const bool apart = !contain_each_other(word, candidate);
    const size_t letters = distance(word, candidate);
    if (apart && (letters > (word.size() + 2) / 3 || letters >= word.size())) continue;
    if (nearest && std::pair{apart, letters} >= least) continue;
    least = {apart, letters}, nearest = &candidate;
  }
  return nearest ? *nearest : "";
}

std::string suggest(std::string_view word, std::span<const std::string> known) {
  const std::string nearest = nearest_word(word, known);
  return fmt::format("; {} one of {}",
                     nearest.empty() ? "choose" : fmt::format("did you mean {}? Choose", nearest),
                     fmt::join(known, ", "));
}

}  // namespace cria
