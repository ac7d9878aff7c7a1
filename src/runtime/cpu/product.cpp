// CPU products: blocks of C are shared out among the pool's workers, each an sgemm() of its own.
// Half-precision operands are converted to f32 first, as no library multiplies them faster here.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "runtime/cpu/sgemm.h"
#include "runtime/product_backend.h"
#include "runtime/thread_pool.h"

namespace cria::cpu {
namespace {

// How many blocks of rows and columns each entry of C is cut into.
struct Cuts {
  int64_t rows = 1;
  int64_t cols = 1;
};

// Blocks for all entries together. NOTE: libraries add up an element's products in another order
// when its block has another size (oneDNN 2.6 with 1000 of them or more, OpenBLAS 0.3.21 with any
// number). So the blocks are those of the problem, never of the number of workers: two for a few
// microseconds' work, twice as many for sixteen times as much, as small ones are slower.
int64_t block_count(double flops) {
  constexpr double kSerialFlops = 1e6, kMore = 16;
  constexpr int64_t kMost = 64;
  if (flops < kSerialFlops) return 1;
  int64_t blocks = 2;
  for (double enough = 2 * kMore * kSerialFlops; flops >= enough && blocks < kMost; enough *= kMore)
    blocks *= 2;
  return blocks;
}

// Among the ways to cut, the least copying: each block reads its rows of A and its columns of B,
// whose rows are dear to read in pieces.
Cuts choose_cuts(const Product& p) {
  constexpr int64_t kMinBlock = 16;
  const double pieces = p.trans_b ? 1 : 3;
  const int64_t wanted = (block_count(2.0 * p.m * p.n * p.k * p.batch) + p.batch - 1) / p.batch;
  Cuts best;
  double best_copied = INFINITY;
  for (int64_t rows = 1; rows <= wanted; ++rows) {
    int64_t cols = (wanted + rows - 1) / rows;
    if ((rows > 1 && rows * kMinBlock > p.m) || (cols > 1 && cols * kMinBlock > p.n)) continue;
    double copied = double(rows) * p.n + pieces * double(cols) * p.m;
    if (copied < best_copied) {
      best = {rows, cols};
      best_copied = copied;
    }
  }
  return best;
}

// The start of part i of n, in multiples of the vector length.
int64_t cut(int64_t size, int64_t i, int64_t n) {
  constexpr int64_t kVector = 16;
  return i == n ? size : std::min(size, size * i / n / kVector * kVector);
}

void multiply_f32(const Product& p, const float* a, const float* b, float* c, const float* addend) {
  const Cuts cuts = choose_cuts(p);
  auto block = [&](int64_t task, int) {
    int64_t entry = task / (cuts.rows * cuts.cols);
    int64_t i = task / cuts.cols % cuts.rows;
    int64_t j = task % cuts.cols;
    int64_t row = cut(p.m, i, cuts.rows), row_end = cut(p.m, i + 1, cuts.rows);
    int64_t col = cut(p.n, j, cuts.cols), col_end = cut(p.n, j + 1, cuts.cols);
    if (row == row_end || col == col_end) return;
    const int64_t corner = entry * p.stride_c + row * p.ldc + col;
    if (p.beta != 0 && addend != c) {
      for (int64_t r = 0; r < row_end - row; ++r)
        std::copy_n(addend + corner + r * p.ldc, col_end - col, c + corner + r * p.ldc);
    }
    sgemm({.trans_a = p.trans_a,
           .trans_b = p.trans_b,
           .m = row_end - row,
           .n = col_end - col,
           .k = p.k,
           .alpha = p.alpha,
           .a = a + entry * p.stride_a + (p.trans_a ? row : row * p.lda),
           .lda = p.lda,
           .b = b + entry * p.stride_b + (p.trans_b ? col * p.ldb : col),
           .ldb = p.ldb,
           .beta = p.beta,
           .c = c + corner,
           .ldc = p.ldc});
  };
  ThreadPool::shared().run(p.batch * cuts.rows * cuts.cols, block);
}

// One operand as dense f32 matrices in the workspace.
struct Dense {
  int64_t entries, rows, cols;

  int64_t size() const { return entries * rows * cols; }
};

// Calls f(entry, row) for each stored row of an operand, on all workers.
template <class F>
void for_rows(const Dense& d, F&& f) {
  ThreadPool::shared().run(d.entries * d.rows, [&](int64_t i, int) { f(i / d.rows, i % d.rows); });
}

template <class T>
void widen(const Dense& d, const T* from, int64_t ld, int64_t stride, float* to) {
  for_rows(d, [&](int64_t entry, int64_t row) {
    const T* in = from + entry * stride + row * ld;
    float* out = to + (entry * d.rows + row) * d.cols;
    for (int64_t i = 0; i < d.cols; ++i) out[i] = to_float(in[i]);
  });
}

// c = round(sums + beta addend): one rounding, as the GPU does it.
template <class T>
void narrow(const Dense& d, const float* sums, float beta, const T* addend, T* c, int64_t ld,
            int64_t stride) {
  for_rows(d, [&](int64_t entry, int64_t row) {
    const float* in = sums + (entry * d.rows + row) * d.cols;
    const int64_t at = entry * stride + row * ld;
    T* out = c + at;
    if (beta == 0) {
      for (int64_t i = 0; i < d.cols; ++i) out[i] = from_float<T>(in[i]);
    } else {
      for (int64_t i = 0; i < d.cols; ++i)
        out[i] = from_float<T>(in[i] + beta * to_float(addend[at + i]));
    }
  });
}

template <class T>
void multiply_half(Stream& stream, const Product& p, const T* a, const T* b, void* c,
                   const void* addend) {
  Dense da{p.stride_a == 0 ? 1 : p.batch, p.trans_a ? p.k : p.m, p.trans_a ? p.m : p.k};
  Dense db{p.stride_b == 0 ? 1 : p.batch, p.trans_b ? p.n : p.k, p.trans_b ? p.k : p.n};
  Dense dc{p.batch, p.m, p.n};
  const bool half_out = p.out != DType::f32;
  int64_t floats = da.size() + db.size() + (half_out ? dc.size() : 0);
  auto* wide_a = reinterpret_cast<float*>(stream.workspace(floats * sizeof(float)));
  float* wide_b = wide_a + da.size();
  float* sums = wide_b + db.size();
  widen(da, a, p.lda, p.stride_a, wide_a);
  widen(db, b, p.ldb, p.stride_b, wide_b);

  Product q = p;
  q.lda = da.cols;
  q.ldb = db.cols;
  q.stride_a = da.entries == 1 ? 0 : da.rows * da.cols;
  q.stride_b = db.entries == 1 ? 0 : db.rows * db.cols;
  if (!half_out) {
    multiply_f32(q, wide_a, wide_b, static_cast<float*>(c), static_cast<const float*>(addend));
    return;
  }
  q.beta = 0;
  q.ldc = dc.cols;
  q.stride_c = dc.rows * dc.cols;
  multiply_f32(q, wide_a, wide_b, sums, sums);
  narrow(dc, sums, p.beta, static_cast<const T*>(addend), static_cast<T*>(c), p.ldc, p.stride_c);
}

}  // namespace

void multiply(Stream& stream, const Product& p, const void* a, const void* b, void* c,
              int algorithm, const void* addend) {
  if (algorithm != 0) fail_f("there is no algorithm {} for products on the CPU: use 0", algorithm);
  if (p.in == DType::f32) {
    multiply_f32(p, static_cast<const float*>(a), static_cast<const float*>(b),
                 static_cast<float*>(c), static_cast<const float*>(addend));
  } else if (p.in == DType::bf16) {
    multiply_half(stream, p, static_cast<const bf16*>(a), static_cast<const bf16*>(b), c, addend);
  } else {
    multiply_half(stream, p, static_cast<const f16*>(a), static_cast<const f16*>(b), c, addend);
  }
}

std::vector<std::string> product_algorithms(int, const Product&) { return {sgemm_library()}; }

std::string product_library(int) { return sgemm_library(); }

}  // namespace cria::cpu
