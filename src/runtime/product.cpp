// Checks, completes, and records a product, and hands it to the device's backend.
#include "runtime/product.h"

#include "base/format.h"
#include "runtime/product_backend.h"
#include "runtime/recorder.h"

namespace cria {
namespace {

// Rows and columns of a matrix as it is stored.
struct Stored {
  int64_t rows, cols;
};

Stored stored_a(const Product& p) { return p.trans_a ? Stored{p.k, p.m} : Stored{p.m, p.k}; }
Stored stored_b(const Product& p) { return p.trans_b ? Stored{p.n, p.k} : Stored{p.k, p.n}; }

int64_t leading_dimension(const Product& p, const char* name, int64_t ld, int64_t cols) {
  if (ld == 0) return cols;
  if (ld < cols) {
    fail_f("product {}: {} is {}, less than the {} columns of a row", describe(p), name, ld, cols);
  }
  return ld;
}

void check_types(const Product& p) {
  bool float_in = p.in == DType::f32 || p.in == DType::bf16 || p.in == DType::f16;
  if (!float_in || (p.out != p.in && p.out != DType::f32)) {
    fail_f(
        "product {} of {} into {}: use f32, bf16 or f16 operands, and a result of the same type "
        "or f32",
        describe(p), name_of(p.in), name_of(p.out));
  }
  if (p.precision == Precision::tf32 && p.in != DType::f32) {
    fail_f("product {}: tf32 is a way to multiply f32 operands, not {}", describe(p),
           name_of(p.in));
  }
}

// Two entries of C may interleave by columns, as attention heads do, but not share elements.
void check_batch(const Product& p) {
  if (p.stride_a < 0 || p.stride_b < 0 || p.stride_c < 0) {
    fail_f("product {}: batch strides must not be negative", describe(p));
  }
  if (p.batch <= 1 || p.m == 0 || p.n == 0) return;
  bool one_after_another = p.stride_c >= (p.m - 1) * p.ldc + p.n;
  bool side_by_side = p.stride_c >= p.n && (p.batch - 1) * p.stride_c + p.n <= p.ldc;
  if (!one_after_another && !side_by_side) {
    fail_f("product {}: with stride_c {} and ldc {} the {} results overlap", describe(p),
           p.stride_c, p.ldc, p.batch);
  }
}

Product complete(Product p) {
  if (p.m < 0 || p.n < 0 || p.k < 0 || p.batch < 0) {
    fail_f("product {} with batch {}: sizes must not be negative", describe(p), p.batch);
  }
  check_types(p);
  p.lda = leading_dimension(p, "lda", p.lda, stored_a(p).cols);
  p.ldb = leading_dimension(p, "ldb", p.ldb, stored_b(p).cols);
  p.ldc = leading_dimension(p, "ldc", p.ldc, p.n);
  check_batch(p);
  return p;
}

// The empty sum: C = beta addend, row by row.
void multiply_nothing(Stream& stream, const Product& p, void* c, const void* addend) {
  if (p.beta == 1 && addend == c) return;
  if (p.beta != 0 && p.beta != 1)
    fail_f("product {}: with k = 0, beta must be 0 or 1", describe(p));
  size_t size = size_of(p.out);
  for (int64_t entry = 0; entry < p.batch; ++entry) {
    for (int64_t row = 0; row < p.m; ++row) {
      const size_t offset = (entry * p.stride_c + row * p.ldc) * size;
      std::byte* to = static_cast<std::byte*>(c) + offset;
      if (p.beta == 0)
        stream.fill(to, 0, p.n * size);
      else
        stream.copy(to, static_cast<const std::byte*>(addend) + offset, p.n * size);
    }
  }
}

}  // namespace

void multiply(Stream& stream, const Product& product, const void* a, const void* b, void* c,
              int algorithm, const void* addend) {
  Product p = complete(product);
  if (!addend) addend = c;
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  std::string config = stream.recorder() ? describe(p) : std::string();
  if (algorithm > 0 && stream.recorder()) config += " algorithm " + std::to_string(algorithm);
  record_launch(stream, "product", config, cost_of(p), [&] {
    if (p.k == 0) {
      multiply_nothing(stream, p, c, addend);
    } else if (stream.device().backend == Backend::cuda) {
      require_products(stream.device());
      cuda::multiply(stream, p, a, b, c, algorithm, addend);
    } else {
      cpu::multiply(stream, p, a, b, c, algorithm, addend);
    }
  });
}

std::vector<std::string> product_algorithms(Device device, const Product& product) {
  Product p = complete(product);
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0) return {"nothing to multiply"};
  require_products(device);
  return device.backend == Backend::cuda ? cuda::product_algorithms(device.index, p)
                                         : cpu::product_algorithms(device.index, p);
}

std::string product_library(Device device) {
  return device.backend == Backend::cuda ? cuda::product_library(device.index)
                                         : cpu::product_library(device.index);
}

std::string why_no_products(Device device) {
  return device.backend == Backend::cuda ? cuda::why_no_products() : cpu::why_no_products();
}

void require_products(Device device) {
  const std::string why = why_no_products(device);
  if (!why.empty()) fail_f("no matrix products on {}: {}", name_of(device), why);
}

Cost cost_of(const Product& p) {
  double batch = p.batch;
  double a = double(p.m) * p.k * (p.stride_a == 0 ? 1 : batch);
  double b = double(p.k) * p.n * (p.stride_b == 0 ? 1 : batch);
  double c = double(p.m) * p.n * batch;
  double in = size_of(p.in), out = size_of(p.out);
  return {.flops = 2.0 * p.m * p.n * p.k * batch,
          .bytes_read = (a + b) * in + (p.beta == 0 ? 0 : c * out),
          .bytes_written = c * out};
}

std::string describe(const Product& p) {
  std::string type = p.precision == Precision::tf32 ? "tf32" : name_of(p.in);
  if (p.out != p.in) type += std::string("->") + name_of(p.out);
  std::string batch = p.batch == 1 ? "" : fmt::format("{}x", p.batch);
  return fmt::format("{}{}x{}x{} {}{} {}", batch, p.m, p.n, p.k, p.trans_a ? 'T' : 'N',
                     p.trans_b ? 'T' : 'N', type);
}

}  // namespace cria
