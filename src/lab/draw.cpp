#include "lab/draw.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "base/format.h"

namespace cria {
namespace {

using tile::AccessCounts;
using tile::AccessKind;
using tile::AccessRecord;

constexpr int kSectorBytes = 32, kWordBytes = 4, kWordsPerSector = 8, kBanks = 32;
constexpr size_t kSectorsShown = 16, kSectorsPerRow = 8;

enum class Ink { green, red, yellow };

std::string paint(const std::string& text, Ink ink, bool colours) {
  if (!colours) return text;
  const int code = ink == Ink::green ? 32 : ink == Ink::red ? 31 : 33;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::vector<uint64_t> active_addresses(const AccessRecord& record) {
  std::vector<uint64_t> out;
  for (uint64_t a : record.address)
    if (a != AccessRecord::kInactive) out.push_back(a);
  return out;
}

// Every sector touched, with a mark for each word of it that some lane uses.
std::map<uint64_t, std::array<bool, kWordsPerSector>> sectors_of(const AccessRecord& record) {
  std::map<uint64_t, std::array<bool, kWordsPerSector>> sectors;
  for (uint64_t address : active_addresses(record))
    for (uint64_t word = address / kWordBytes; word <= (address + record.bytes - 1) / kWordBytes;
         ++word)
      sectors[word / kWordsPerSector][word % kWordsPerSector] = true;
  return sectors;
}

std::string draw_lanes(const AccessRecord& record, uint64_t base) {
  std::string out = "  lane -> byte:";
  for (int lane : {0, 1, 2, 3, 30, 31}) {
    if (lane == 30) out += "  ...";
    const uint64_t a = record.address[lane];
    out += a == AccessRecord::kInactive ? fmt::format("  {} -> off", lane)
                                        : fmt::format("  {} -> +{}", lane, int64_t(a - base));
  }
  return out + "\n";
}

std::string draw_sectors(const AccessRecord& record, Ink ink, bool colours) {
  std::string out;
  size_t shown = 0;
  const auto sectors = sectors_of(record);
  for (const auto& [sector, used] : sectors) {
    if (shown == kSectorsShown) break;
    std::string cell = "[";
    for (bool word : used) cell += word ? '#' : '.';
    cell += "]";
    out += (shown % kSectorsPerRow == 0 ? "  " : " ") + paint(cell, ink, colours);
    if (++shown % kSectorsPerRow == 0) out += "\n";
  }
  if (shown % kSectorsPerRow != 0) out += "\n";
  if (sectors.size() > shown)
    out += fmt::format("  ... and {} sectors more\n", sectors.size() - shown);
  return out;
}

std::string draw_global(const AccessRecord& record, bool colours) {
  const std::vector<uint64_t> addresses = active_addresses(record);
  if (addresses.empty()) return "  no lane is active\n";
  const AccessCounts n = tile::count(record);
  const int64_t least = (n.useful_bytes + kSectorBytes - 1) / kSectorBytes;
  const bool coalesced = n.sectors <= least + 1;  // an unaligned run may touch one sector more
  const Ink ink = coalesced ? Ink::green : Ink::red;
  const std::string verdict =
      fmt::format("{}: {} sectors for {} bytes", coalesced ? "coalesced" : "not coalesced",
                  n.sectors, n.useful_bytes);
  const uint64_t base = *std::min_element(addresses.begin(), addresses.end());
  return "  " + paint(verdict, ink, colours) + "\n" + draw_lanes(record, base) +
         draw_sectors(record, ink, colours);
}

std::string draw_bulk(const AccessRecord& record, bool colours) {
  const AccessCounts n = tile::count(record);
  return "  " +
         paint(fmt::format("one bulk copy of {} rows of {} bytes: {} sectors", record.rows,
                           record.bytes, n.sectors),
               Ink::green, colours) +
         "\n";
}

// How many different words each bank has to give, over the whole request.
std::string draw_shared(const AccessRecord& record, bool colours) {
  std::array<std::set<uint64_t>, kBanks> words;
  for (uint64_t a : active_addresses(record))
    for (uint64_t w = a / kWordBytes; w <= (a + record.bytes - 1) / kWordBytes; ++w)
      words[w % kBanks].insert(w);
  const AccessCounts n = tile::count(record);
  const Ink ink = n.conflicts == 0 ? Ink::green : Ink::yellow;
  std::string out = "  " + paint(fmt::format("{} wavefronts, {} of them for bank conflicts",
                                             n.wavefronts, n.conflicts),
                                 ink, colours);
  out += "\n  words per bank:";
  for (int bank = 0; bank < kBanks; ++bank)
    out += (bank % 8 == 0 ? "  " : " ") + paint(std::to_string(words[bank].size()), ink, colours);
  return out + "\n";
}

}  // namespace

std::string draw_access(const AccessRecord& record, bool colours) {
  if (is_shared(record.kind)) return draw_shared(record, colours);
  return is_bulk(record.kind) ? draw_bulk(record, colours) : draw_global(record, colours);
}

std::string draw_warp(const Inspection& inspection, bool colours) {
  std::string out;
  std::set<std::tuple<std::string, int, AccessKind, int>> seen;
  for (const AccessRecord& record : inspection.trace.log()) {
    if (!seen.insert({record.file, record.line, record.kind, record.operand}).second) continue;
    const std::string path = record.file;
    const std::string operand =
        record.operand < 0 ? "" : " " + inspection.trace.operands()[record.operand].name;
    out += fmt::format("{}:{} {}{}, program {} warp {}, {} bytes per {}\n",
                       path.substr(path.rfind('/') + 1), record.line, name_of(record.kind), operand,
                       record.program, record.warp, record.bytes,
                       is_bulk(record.kind) ? "row" : "lane");
    out += draw_access(record, colours);
  }
  return out;
}

}  // namespace cria
