#include "lab/problems/problems.h"

namespace cria {

std::vector<ProblemSpec> all_problems() {
  std::vector<ProblemSpec> all;
  for (auto family : {elementwise_problems,
                      reduction_problems,
                      softmax_problems,
                      rmsnorm_problems,
                      rope_problems,
                      embedding_problems,
                      cross_entropy_problems,
                      adamw_problems,
                      head_problems,
                      transpose_problems,
                      gemm_problems,
                      gemm_group_problems,
                      gate_up_problems,
                      gate_up_backward_problems,
                      qkv_problems,
                      attention_problems,
                      attention_backward_problems,
                      gemv_problems,
                      place_qkv_problems,
                      attention_decode_problems,
                      fma_problems})
    for (ProblemSpec& spec : family()) all.push_back(std::move(spec));
  return all;
}

Ceiling compute_ceiling(Device device, DType dtype, bool tf32) {
  if (device.backend == Backend::cpu) return fma_ceiling(device);
  return product_ceiling(device, dtype, library_precision(tf32));
}

Parameter shares_parameter() {
  return {"shares", "parts of the work with a sum of their own; 0: as plans have it", 0, 0, 0};
}

int shares_of(const ProblemRequest& request, int planned) {
  return request["shares"] > 0 ? request["shares"] : planned;
}

Parameter vocab_parameter() {
  Parameter vocab{"vocab", "tokens there are", 32000, 32000};
  vocab.alias = "vocabulary";
  return vocab;
}

Parameter tf32_parameter() {
  return {"tf32", "1: multiply f32 as tf32 on tensor cores", 0, 0, 0, 1};
}

}  // namespace cria
