// Problems in which every element of the outputs depends on the same element of the inputs: a
// matrix each, bound by memory.
#pragma once

#include <span>

#include "lab/problems/problems.h"

namespace cria {

class ElementwiseProblem : public Problem {
 public:
  Ceiling ceiling() const final { return copy_ceiling(device(), cost().bytes()); }

 protected:
  struct Set {
    std::vector<const Operand*> in, out;
  };

  ElementwiseProblem(const ProblemRequest& request, int rows, int cols, int inputs, int outputs);

  // The outputs of one element; a bound on what was added up to each comes back in `norm`.
  virtual void exact(std::span<const double> in, std::span<Exact> out) const = 0;

  std::vector<Set> data_;

 private:
  Accuracy check_results() const final;
};

}  // namespace cria
