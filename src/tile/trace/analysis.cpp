#include "tile/trace/analysis.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace cria::tile {
namespace {

constexpr int kSectorBytes = 32, kBanks = 32, kBankBytes = 4;

int64_t sectors_of(uint64_t address, int64_t bytes) {
  return static_cast<int64_t>((address + bytes - 1) / kSectorBytes - address / kSectorBytes) + 1;
}

// One lane after the other by address: what overlaps is counted once.
AccessCounts count_global(const AccessRecord& r) {
  AccessCounts n{.requests = 1};
  std::pair<uint64_t, uint64_t> active[AccessRecord::kLanes];  // where each begins and ends
  int lanes = 0;
  for (int lane = 0; lane < AccessRecord::kLanes; ++lane) {
    const uint64_t a = r.address[lane];
    if (a == AccessRecord::kInactive) continue;
    active[lanes++] = {a, a + r.bytes - r.beyond[lane]};
    n.requested_bytes += r.bytes - r.beyond[lane];
  }
  if (!std::is_sorted(active, active + lanes)) std::sort(active, active + lanes);
  uint64_t covered = 0;      // bytes below are counted
  uint64_t next_sector = 0;  // sectors below are counted
  for (int i = 0; i < lanes; ++i) {
    const auto [begin, end] = active[i];
    if (end > covered) n.useful_bytes += static_cast<int64_t>(end - std::max(begin, covered));
    covered = std::max(covered, end);
    const uint64_t first = std::max(begin / kSectorBytes, next_sector);
    const uint64_t last = (end - 1) / kSectorBytes;
    if (last + 1 > first) n.sectors += static_cast<int64_t>(last + 1 - first);
    next_sector = std::max(next_sector, last + 1);
  }
  return n;
}

AccessCounts count_bulk(const AccessRecord& r) {
  AccessCounts n{.requests = 1};
  for (int i = 0; i < r.rows; ++i)
    n.sectors += sectors_of(r.address[0] + i * r.row_stride, r.bytes);
  n.useful_bytes = n.requested_bytes = int64_t{r.rows} * r.bytes;
  return n;
}

// Lanes pass in groups that together ask for at most 128 bytes. A group takes as many wavefronts as
// one bank has distinct words to give.
AccessCounts count_shared(const AccessRecord& r) {
  AccessCounts n{.requests = 1};
  const int group = std::min(AccessRecord::kLanes, kBanks * kBankBytes / r.bytes);
  for (int first = 0; first < AccessRecord::kLanes; first += group) {
    uint64_t words[kBanks * 2];
    int count = 0, active = 0;
    for (int lane = first; lane < first + group; ++lane) {
      const uint64_t a = r.address[lane];
      if (a == AccessRecord::kInactive) continue;
      ++active;
      for (uint64_t w = a / kBankBytes; w <= (a + r.bytes - 1) / kBankBytes; ++w)
        words[count++] = w;
    }
    if (active == 0) continue;
    std::sort(words, words + count);
    count = static_cast<int>(std::unique(words, words + count) - words);
    int per_bank[kBanks] = {}, most = 0;
    for (int i = 0; i < count; ++i) most = std::max(most, ++per_bank[words[i] % kBanks]);
    n.wavefronts += most;
    n.conflicts += most - 1;
    n.requested_bytes += int64_t{active} * r.bytes;
  }
  n.useful_bytes = n.requested_bytes;
  return n;
}

std::string base_name(const char* file) {
  const std::string path = file;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

AccessCounts& AccessCounts::operator+=(const AccessCounts& o) {
  requests += o.requests;
  sectors += o.sectors;
  useful_bytes += o.useful_bytes;
  requested_bytes += o.requested_bytes;
  wavefronts += o.wavefronts;
  conflicts += o.conflicts;
  return *this;
}

AccessCounts count(const AccessRecord& record) {
  if (is_shared(record.kind)) return count_shared(record);
  return is_bulk(record.kind) ? count_bulk(record) : count_global(record);
}

void Trace::begin(std::string kernel, OperandTable operands, int64_t grid_x, int64_t grid_y) {
  kernel_ = std::move(kernel);
  operands_ = std::move(operands);
  grid_x_ = std::max<int64_t>(grid_x, 1), grid_y_ = std::max<int64_t>(grid_y, 1);
  counts_.clear();
  log_.clear();
  last_ = nullptr;
}

int Trace::operand_of(uint64_t base, uint64_t address, bool write) const {
  for (uint64_t a : {base, address})
    if (const int found = operands_.find(a, write); found >= 0) return found;
  return operands_.nearest(base);
}

void Trace::add(const AccessRecord& r) {
  if (!is_shared(r.kind)) {
    const bool write = is_write(r.kind);
    if (is_bulk(r.kind)) {
      for (int i = 0; i < r.rows; ++i) {
        check(r, r.address[0] + i * r.row_stride, r.bytes);
        operands_.touch(r.operand, r.address[0] + i * r.row_stride, r.bytes, write);
      }
    } else {
      for (int lane = 0; lane < AccessRecord::kLanes; ++lane) {
        const uint64_t a = r.address[lane];
        if (a == AccessRecord::kInactive) continue;
        const int bytes = r.bytes - r.beyond[lane];
        check(r, a, bytes);
        operands_.touch(r.operand, a, bytes, write);
      }
    }
  }
  if (!last_ || r.line != last_line_ || r.kind != last_kind_ || r.operand != last_operand_ ||
      r.file != last_file_) {
    last_ = &counts_[Key{base_name(r.file), r.line, r.kind, r.operand}];
    last_file_ = r.file, last_line_ = r.line, last_kind_ = r.kind, last_operand_ = r.operand;
  }
  *last_ += count(r);
  if (log_.size() < options_.log_records) log_.push_back(r);
}

void Trace::check(const AccessRecord& r, uint64_t address, int bytes) const {
  const bool write = is_write(r.kind);
  auto stop = [&](const char* fault, const std::string& text) {
    complain(std::string(fault) + ": a " + name_of(r.kind) + text, r.program, r.file, r.line);
  };
  if (r.operand < 0)
    stop("out of bounds", " touches no operand: pass the tensor in Args::operands");
  const TracedOperand& t = operands()[r.operand];
  auto check_inside = [&](uint64_t a) {
    if (!OperandTable::contains(t, a))
      stop("out of bounds", " of " + describe(r.operand, a) + ": mask it, or correct its offsets");
  };
  check_inside(address);
  if (bytes > t.element_bytes) check_inside(address + bytes - t.element_bytes);
  if (write && !t.writable)
    stop("write to a const operand",
         " to " + describe(r.operand, address) +
             ": declare it Tensor<T>, without const, if it is an output");
  if (!is_bulk(r.kind) && address % r.bytes != 0)
    stop("misaligned", " of " + std::to_string(r.bytes) + " bytes at " +
                           describe(r.operand, address) +
                           ": offsets of vector accesses must be multiples of the vector");
}

std::string Trace::describe(int operand, uint64_t address) const {
  if (operand < 0) return "no operand";
  const TracedOperand& t = operands()[operand];
  const ElementIndex i = OperandTable::index_of(t, address);
  auto triple = [](int64_t a, int64_t b, int64_t c, const char* gap) {
    return std::to_string(a) + gap + std::to_string(b) + gap + std::to_string(c);
  };
  return "operand " + t.name + "[" + triple(i.batch, i.row, i.col, ", ") + "] (" +
         triple(t.batch, t.rows, t.cols, " x ") + ")";
}

void Trace::complain(const std::string& what, int64_t program, const char* file, int line) const {
  fail("kernel " + kernel_ + ": " + what + "; program (" + std::to_string(program % grid_x_) + "," +
       std::to_string(program / grid_x_ % grid_y_) + "," +
       std::to_string(program / grid_x_ / grid_y_) + "), " + base_name(file) + ":" +
       std::to_string(line));
}

std::vector<LineCounts> Trace::lines() const {
  std::vector<LineCounts> out;
  for (const auto& [key, counts] : counts_) {
    const auto& [file, line, kind, operand] = key;
    out.push_back({file, line, kind, operand, counts});
  }
  return out;
}

AccessCounts Trace::total(AccessKind kind) const {
  AccessCounts sum;
  for (const auto& [key, counts] : counts_)
    if (std::get<AccessKind>(key) == kind) sum += counts;
  return sum;
}

AccessCounts Trace::total(AccessKind kind, int operand) const {
  AccessCounts sum;
  for (const auto& [key, counts] : counts_)
    if (std::get<AccessKind>(key) == kind && std::get<3>(key) == operand) sum += counts;
  return sum;
}

int64_t Trace::unique_bytes_read() const {
  int64_t sum = 0;
  for (int i = 0; i < static_cast<int>(operands().size()); ++i) sum += unique_bytes_read(i);
  return sum;
}

int64_t Trace::unique_bytes_written() const {
  int64_t sum = 0;
  for (int i = 0; i < static_cast<int>(operands().size()); ++i) sum += unique_bytes_written(i);
  return sum;
}

}  // namespace cria::tile
