// Two plans on the same weights and the same batch, tensor by tensor in the order they are made:
// where do they first differ by more than rounding?
#pragma once

#include <string>
#include <vector>

#include "train/trainer.h"

namespace cria {

// Of one stage of a model in this precision: its own type's, or that of its products' operands.
double stage_roundoff(DType dtype, Precision precision);

struct TensorDifference {
  std::string name;
  int rows = 0, cols = 0;
  double norm = 0;      // length of the first plan's tensor
  double relative = 0;  // length of the difference over norm; infinite with a NaN
  double bound = 0;     // what rounding can explain
  bool differs() const { return !(relative <= bound); }
};

// Tensors that both plans make, then the gradients of all weights.
std::vector<TensorDifference> diff_plans(TrainerOptions options, const std::string& plan,
                                         const std::string& against, uint64_t seed,
                                         const HostBatch& batch);

}  // namespace cria
