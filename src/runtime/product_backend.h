// What a backend provides to multiply(), which has checked the product, filled in its leading
// dimensions, and handled empty ones: m, n, k and batch are positive, and the addend is not null.
#pragma once

#include <string>
#include <vector>

#include "runtime/product.h"

namespace cria::cpu {
void multiply(Stream& stream, const Product& product, const void* a, const void* b, void* c,
              int algorithm, const void* addend);
std::vector<std::string> product_algorithms(int index, const Product& product);
std::string product_library(int index);
inline std::string why_no_products() { return ""; }
}  // namespace cria::cpu

namespace cria::cuda {  // in cuda/, or in cuda_stub/ for a build without CUDA
void multiply(Stream& stream, const Product& product, const void* a, const void* b, void* c,
              int algorithm, const void* addend);
std::vector<std::string> product_algorithms(int index, const Product& product);
std::string product_library(int index);
std::string why_no_products();
}  // namespace cria::cuda
