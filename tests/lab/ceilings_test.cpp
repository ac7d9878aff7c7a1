// Ceilings are what nothing passes.
#include "lab/ceilings.h"

#include <gtest/gtest.h>

#include "lab/bench.h"
#include "runtime/on_device.h"

namespace cria::test {
namespace {

class CeilingsTest : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, CeilingsTest, every_backend(), backend_name);

// The library's product does nothing but multiply and add: as fast as that goes, and no faster.
TEST_P(CeilingsTest, ProductsStayBelowMultiplyAdds) {
  Stream stream(device());
  const Ceiling fma = fma_ceiling(device()), product = product_ceiling(device(), DType::f32);
  const std::vector<Timing> timings =
      measure(stream, {product.contender, fma.contender}, {.budget_s = 1, .min_rounds = 21});
  const Ratio times = speed_ratio(timings[0], timings[1]);
  const double scale = product.amount / fma.amount;  // from times to rates
  EXPECT_LE(times.p10 * scale, 1) << "the product's rate is " << times.median * scale
                                  << " of the multiply-adds'";
  EXPECT_GT(times.p90 * scale, 0.05);
}

// What no kernel that moves these bytes can pass, as a share of the copy's rate. A GPU reads faster than it copies, so a
// kernel that reads more than it writes is bounded by a copy of what it writes and a reading of the rest.
double most_of_copy(Device device, const Cost& cost) {
  if (device.backend == Backend::cpu) return 1;
  Stream stream(device);
  const Ceiling copy = copy_ceiling(device, 2e9), read = read_ceiling(device, 2e9);
  const std::vector<Timing> timings =
      measure(stream, {copy.contender, read.contender}, {.budget_s = 1, .min_rounds = 15});
  const double slower = speed_ratio(timings[0], timings[1]).median * copy.amount / read.amount;
  const double copied = 2 * cost.bytes_written, more = cost.bytes_read - cost.bytes_written;
  return cost.bytes() / (copied + more * slower);
}

// Operands larger than the caches: two that write where they have read, and one that does not.
TEST_P(CeilingsTest, KernelsStayBelowMemory) {
  for (const char* name : {"accumulate", "adamw", "silu_up"}) {
    const ProblemSpec& spec = find_problem(name);
    const ProblemRequest request{.device = device()};
    const BenchResult result = bench(spec, request, {.measure = {.budget_s = 1, .min_rounds = 15}});
    ASSERT_EQ(result.unit, "GB/s") << name;
    const double most = most_of_copy(device(), make_problem(spec, request)->cost());
    for (const BenchRow& row : result.rows)
      if (row.kind == BenchRow::Kind::kernel) {
        EXPECT_LE(row.of_ceiling.p10, most) << name << ", median " << row.of_ceiling.median;
      }
  }
}

TEST_P(CeilingsTest, FiguresHaveNamesUnitsAndRates) {
  for (const CeilingFigure& figure : measure_ceilings(device(), {.budget_s = 0, .min_rounds = 3})) {
    EXPECT_GT(figure.value, 0) << figure.name;
    const bool bytes = figure.name.starts_with("copy") || figure.name == "read";
    EXPECT_EQ(figure.unit, bytes ? "GB/s" : "TFLOP/s") << figure.name;
  }
}

}  // namespace
}  // namespace cria::test
