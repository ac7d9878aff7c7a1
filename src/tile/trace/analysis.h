// What a stream of requests costs: sectors, useful bytes, bank conflicts, footprint; per source
// line and operand, and in total. Records are consumed as they come; only the first few are kept,
// if asked for.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tile/trace/operands.h"
#include "tile/trace/record.h"

namespace cria::tile {

struct TraceOptions {
  int64_t first_program = 0;
  int64_t program_limit = INT64_MAX;  // how many to run
  int resident_programs = 132;        // one wave of a persistent kernel
  size_t log_records = 0;             // how many records to keep
};

// Sectors are 32 bytes of global memory, wavefronts one pass over the 32 banks of shared memory.
struct AccessCounts {
  int64_t requests = 0;
  int64_t sectors = 0;
  int64_t useful_bytes = 0;     // distinct bytes of each request, added up
  int64_t requested_bytes = 0;  // of all active lanes
  int64_t wavefronts = 0;
  int64_t conflicts = 0;  // wavefronts beyond what the request's width needs

  AccessCounts& operator+=(const AccessCounts& other);
  double sectors_per_request() const { return requests ? double(sectors) / double(requests) : 0; }
  double useful_bytes_per_sector() const {
    return sectors ? double(useful_bytes) / double(sectors) : 0;
  }
};

// The counts of one request.
AccessCounts count(const AccessRecord& record);

struct LineCounts {
  std::string file;
  int line;
  AccessKind kind;
  int operand;  // index into Trace::operands(), -1 for shared memory
  AccessCounts counts;
};

class Trace {
 public:
  explicit Trace(TraceOptions options = {}) : options_(options) {}
  const TraceOptions& options() const { return options_; }

  // ---- filled by a traced launch
  void begin(std::string kernel, OperandTable operands, int64_t grid_x, int64_t grid_y);
  // Checks, counts and perhaps keeps one request; throws Error for an access a kernel must not
  // make.
  void add(const AccessRecord& record);
  const std::string& kernel() const { return kernel_; }

  // ---- results
  const std::vector<TracedOperand>& operands() const { return operands_.list(); }
  std::vector<LineCounts> lines() const;  // by file, line, kind, operand
  AccessCounts total(AccessKind kind) const;
  AccessCounts total(AccessKind kind, int operand) const;
  int64_t unique_bytes_read(int operand) const { return operands_.unique_bytes(operand, false); }
  int64_t unique_bytes_written(int operand) const { return operands_.unique_bytes(operand, true); }
  int64_t unique_bytes_read() const;
  int64_t unique_bytes_written() const;
  const std::vector<AccessRecord>& log() const { return log_; }

  // The operand an access means: the one its base points into, else the one it touches, else the
  // one it ran past, at either end.
  int operand_of(uint64_t base, uint64_t address, bool write) const;
  // "operand x[0, 3, 64] (1 x 4 x 64)"; -1 for no operand.
  std::string describe(int operand, uint64_t address) const;
  // "kernel K: what; program (1,0,0), file.h:12": the end of every complaint.
  [[noreturn]] void complain(const std::string& what, int64_t program, const char* file,
                             int line) const;

 private:
  void check(const AccessRecord& record, uint64_t address, int bytes) const;

  using Key = std::tuple<std::string, int, AccessKind, int>;  // file, line, kind, operand
  TraceOptions options_;
  std::string kernel_;
  int64_t grid_x_ = 1, grid_y_ = 1;
  OperandTable operands_;
  std::map<Key, AccessCounts> counts_;
  AccessCounts* last_ = nullptr;  // most records come from the same line as the one before
  const char* last_file_ = nullptr;
  int last_line_ = 0, last_operand_ = 0;
  AccessKind last_kind_{};
  std::vector<AccessRecord> log_;
};

}  // namespace cria::tile
