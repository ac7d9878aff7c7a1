// The problems there are, one function per family of kernels.
#pragma once

#include <vector>

#include "lab/problem.h"

namespace cria {

std::vector<ProblemSpec> elementwise_problems();
std::vector<ProblemSpec> reduction_problems();
std::vector<ProblemSpec> softmax_problems();
std::vector<ProblemSpec> rmsnorm_problems();
std::vector<ProblemSpec> rope_problems();
std::vector<ProblemSpec> embedding_problems();
std::vector<ProblemSpec> cross_entropy_problems();
std::vector<ProblemSpec> adamw_problems();
std::vector<ProblemSpec> head_problems();
std::vector<ProblemSpec> gemv_problems();
std::vector<ProblemSpec> place_qkv_problems();
std::vector<ProblemSpec> attention_decode_problems();
std::vector<ProblemSpec> transpose_problems();
std::vector<ProblemSpec> gemm_problems();
std::vector<ProblemSpec> gemm_group_problems();
std::vector<ProblemSpec> gate_up_problems();
std::vector<ProblemSpec> gate_up_backward_problems();
std::vector<ProblemSpec> qkv_problems();
std::vector<ProblemSpec> attention_problems();
std::vector<ProblemSpec> attention_backward_problems();
std::vector<ProblemSpec> fma_problems();

std::vector<ProblemSpec> all_problems();

// A ProblemSpec::make.
template <class P>
std::unique_ptr<Problem> make(const ProblemRequest& request) {
  return std::make_unique<P>(request);
}

// The ceiling of kernels that multiply matrices: the library's product in the same precision, on
// the CPU the fused multiply-adds themselves.
Ceiling compute_ceiling(Device device, DType dtype, bool tf32);

// Relative rounding error of operands when fp32 is multiplied as tf32.
inline double product_roundoff(DType dtype, bool tf32) {
  return dtype == DType::f32 && tf32 ? kRoundoffTf32 : 0;
}

inline kernels::DotPrecision dot_precision(bool tf32) {
  return tf32 ? kernels::DotPrecision::kTf32 : kernels::DotPrecision::kFp32;
}

inline Precision library_precision(bool tf32) { return tf32 ? Precision::tf32 : Precision::full; }

// The parameter --shares of kernels that leave a partial sum for each share of their work, and its
// value.
Parameter shares_parameter();
int shares_of(const ProblemRequest& request, int planned);

// The switch --tf32 of kernels with products.
Parameter tf32_parameter();

// The tokens that a table or a row of logits has.
Parameter vocab_parameter();

// The sizes of attention, forward and backward.
std::vector<Parameter> attention_parameters();

}  // namespace cria
