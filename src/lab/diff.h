// Two plans on the same weights and the same batch, tensor by tensor in the order they are made:
// where do they first differ by more than rounding?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/trainer.h"

namespace cria {

// Of one stage of a model in f32: its own type's, or that of its products' operands.
double stage_roundoff(DType dtype, Precision precision);

struct TensorDifference {
  std::string name;
  int rows = 0, cols = 0;
  double norm = 0;      // length of the first plan's tensor
  double relative = 0;  // length of the difference over norm; infinite with a NaN
  double bound = 0;     // what rounding can explain
  bool differs() const { return !(relative <= bound); }
};

// A tensor in host memory.
struct KeptTensor {
  std::string name;
  int rows, cols;
  std::vector<float> values;
};
KeptTensor keep_tensor(Stream& stream, const Made& made);

// What a run makes against what another has made, in the order it is made.
class Comparison {
 public:
  Comparison(DType dtype, Precision precision) : dtype_(dtype), precision_(precision) {}

  // A tensor of the run that is compared with, all of which come first.
  void expect(KeptTensor tensor);
  // A tensor of the other run. One that was not expected is passed over.
  void add(const KeptTensor& made);

  std::vector<TensorDifference> take() { return std::move(differences_); }

 private:
  double bound(const std::string& name) const;
  double stages_behind(const std::string& name) const;

  const DType dtype_;
  const Precision precision_;
  std::map<std::string, KeptTensor> expected_;
  double stages_ = 5;                        // up to now
  std::map<std::string, double> stages_at_;  // by tensor, and by block
  std::vector<TensorDifference> differences_;
};

// Tensors that both plans make, then the gradients of all weights.
std::vector<TensorDifference> diff_plans(TrainerOptions options, const std::string& plan,
                                         const std::string& against, uint64_t seed,
                                         const HostBatch& batch);

}  // namespace cria
