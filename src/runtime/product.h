// Matrix products of the vendor's library behind one interface: cuBLASLt on CUDA; oneDNN, else
// OpenBLAS, on the CPU. The same call on the same device gives the same bits every time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/cost.h"
#include "base/dtype.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace cria {

// How f32 elements are multiplied. Sums are always kept in f32; bf16 and f16 multiply exactly.
enum class Precision {
  full,  // as f32
  tf32,  // rounded to 10 bits of mantissa for the tensor cores; on the CPU the same as full
};

// C = alpha op(A) op(B) + beta addend for each entry of a batch, all row-major:
// op(A) is m x k, op(B) is k x n, C is m x n; op transposes where asked.
struct Product {
  int m = 0;
  int n = 0;
  int k = 0;
  bool trans_a = false;  // A is stored k x m
  bool trans_b = false;  // B is stored n x k
  DType in = DType::f32;
  DType out = DType::f32;  // the type of A and B, or f32
  Precision precision = Precision::full;
  float alpha = 1;
  float beta = 0;  // 0: nothing is added; else cuBLASLt may round the product to C's type first
  // Elements from one stored row to the next; 0 when rows are contiguous.
  int64_t lda = 0;
  int64_t ldb = 0;
  int64_t ldc = 0;
  int batch = 1;
  // Elements from one batch entry to the next; 0 for A or B shares one matrix among all.
  int64_t stride_a = 0;
  int64_t stride_b = 0;
  int64_t stride_c = 0;
};

// Puts the product into the stream. `algorithm` is an index into product_algorithms(); 0 is the
// library's own choice. The addend has C's layout and is C itself when null; C must not overlap A,
// B or an addend of its own.
void multiply(Stream& stream, const Product& product, const void* a, const void* b, void* c,
              int algorithm = 0, const void* addend = nullptr);

// The library's candidates for a product on 256-byte aligned operands, best guess first, at most 8;
// each is a short description.
std::vector<std::string> product_algorithms(Device device, const Product& product);

// The library in use, with its version: "cuBLASLt 13.0.0", "oneDNN 2.6.3"; "none" where there is none.
std::string product_library(Device device);

// Why all of the above but product_library() fail on a device and what to do about it, as the end of a sentence;
// empty where they do not.
std::string why_no_products(Device device);
void require_products(Device device);  // an Error with that sentence

Cost cost_of(const Product& product);

// "8192x4096x1024 NT bf16", the m x n x k of the product and which operands are transposed.
std::string describe(const Product& product);

}  // namespace cria
