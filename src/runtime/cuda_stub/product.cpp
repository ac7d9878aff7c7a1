// Stands in for cuBLASLt in a build without CUDA. No stream can be on CUDA, so none of it is
// reached but by a Device made by hand.
#include "base/error.h"
#include "runtime/driver.h"
#include "runtime/product_backend.h"

namespace cria::cuda {
namespace {

[[noreturn]] void absent() { fail("no CUDA device: " + cuda_driver().absent_reason()); }

}  // namespace

void multiply(Stream&, const Product&, const void*, const void*, void*, int, const void*) {
  absent();
}
std::vector<std::string> product_algorithms(int, const Product&) { absent(); }
std::string product_library(int) { absent(); }
std::string why_no_products() { absent(); }

}  // namespace cria::cuda
