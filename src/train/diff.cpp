#include "train/diff.h"

#include <cmath>
#include <map>

#include "base/dtype.h"
#include "base/rounding.h"

namespace cria {
namespace {

struct Kept {
  std::string name;
  int rows, cols;
  std::vector<float> values;
};

Kept keep(Stream& stream, const Made& made) {
  Kept out{made.name, made.rows, made.cols, {}};
  out.values.reserve(size_t(made.rows) * made.cols);
  with_dtype(made.dtype, [&]<class T>(T) {
    std::vector<T> row(made.cols);
    for (int r = 0; r < made.rows; ++r) {
      stream.copy(row.data(), static_cast<const T*>(made.data) + r * made.ld,
                  row.size() * sizeof(T));
      stream.synchronize();
      for (const T x : row) out.values.push_back(static_cast<float>(to_float(x)));
    }
  });
  return out;
}

std::unique_ptr<Trainer> trainer_of(TrainerOptions options, const std::string& plan,
                                    uint64_t seed) {
  options.plan = plan;
  auto trainer = make_trainer(options);
  trainer->initialise(seed);
  return trainer;
}

TensorDifference compare(const Kept& a, const Kept& b, double bound) {
  TensorDifference out{.name = a.name, .rows = a.rows, .cols = a.cols, .bound = bound};
  double length = 0, error = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double difference = double(a.values[i]) - b.values[i];
    length += double(a.values[i]) * a.values[i];
    error += difference * difference;
  }
  out.norm = std::sqrt(length);
  out.relative = error == 0 ? 0 : std::sqrt(error / length);
  if (std::isnan(out.relative)) out.relative = INFINITY;
  return out;
}

}  // namespace

double stage_roundoff(DType dtype, Precision precision) {
  // Tensor cores may cut f32 operands to tf32's 10 bits instead of rounding them.
  return precision == Precision::tf32 ? 2 * kRoundoffTf32 : roundoff(dtype);
}

std::vector<TensorDifference> diff_plans(TrainerOptions options, const std::string& plan,
                                         const std::string& against, uint64_t seed,
                                         const HostBatch& batch) {
  std::map<std::string, Kept> reference;
  {
    auto trainer = trainer_of(options, against, seed);
    trainer->watch(batch, [&](const Made& made) {
      reference.emplace(made.name, keep(trainer->stream(), made));
    });
  }
  std::vector<TensorDifference> out;
  double stages = 5;
  // Both plans are off, each by the bound.
  const double unit = 2 * stage_roundoff(options.dtype, options.precision);
  auto trainer = trainer_of(options, plan, seed);
  trainer->watch(batch, [&](const Made& made) {
    auto found = reference.find(made.name);
    if (found == reference.end()) return;
    if (!made.name.starts_with("gradient of ")) ++stages;
    out.push_back(
        compare(found->second, keep(trainer->stream(), made), stages_bound(unit, stages)));
  });
  return out;
}

}  // namespace cria
