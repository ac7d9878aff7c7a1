#include "lab/library.h"

#include "runtime/library_transpose.h"

namespace cria {
namespace {

// An extent as one operand has it.
struct Side {
  Operand::Count count;
  bool along_rows;
};
Side rows_of(const Operand& o) { return {o.layout().rows, false}; }
Side cols_of(const Operand& o) { return {o.layout().cols, true}; }

// What the library is given of an extent of two operands. Gaps that only one has are of a matrix
// with one row or column.
int extent_of(Side x, Side y) {
  require(x.count.exact == y.count.exact, "operands given to a library differ in size");
  const bool over_gaps = (x.along_rows || y.along_rows) && x.count.with_gaps == y.count.with_gaps;
  return over_gaps ? x.count.with_gaps : x.count.exact;
}

}  // namespace

Product product_of(Product how, const Operand& a, const Operand& b, const Operand& c) {
  require(a.batch() == c.batch() && b.batch() == c.batch(),
          "operands given to a library differ in how many matrices they are");
  const Side m = how.trans_a ? cols_of(a) : rows_of(a);
  const Side n = how.trans_b ? rows_of(b) : cols_of(b);
  how.m = extent_of(m, rows_of(c));
  how.n = extent_of(n, cols_of(c));
  how.k = extent_of(how.trans_a ? rows_of(a) : cols_of(a), how.trans_b ? cols_of(b) : rows_of(b));
  how.in = a.dtype(), how.out = c.dtype();
  how.lda = a.layout().ld, how.ldb = b.layout().ld, how.ldc = c.layout().ld;
  how.batch = c.batch();
  how.stride_a = a.layout().stride;
  how.stride_b = b.layout().stride;
  how.stride_c = c.layout().stride;
  return how;
}

void library_transpose(Stream& stream, const Operand& x, const Operand& y) {
  const int rows = extent_of(rows_of(x), cols_of(y)), cols = extent_of(cols_of(x), rows_of(y));
  library_transpose(stream, x.dtype(), rows, cols, x.data(), y.data());
}

}  // namespace cria
