#include "model/resize.h"

#include <algorithm>
#include <numeric>

#include "base/dims.h"
#include "base/format.h"

namespace cria {
namespace {

constexpr int kFfnUnit = 16;

void resize_heads(ModelConfig& out, const ModelSizes& sizes) {
  if (sizes.heads > 0 && sizes.head_dim > 0) {
    out.heads = sizes.heads, out.head_dim = sizes.head_dim;
  } else if (sizes.heads > 0) {
    if (out.dim % sizes.heads != 0)
      fail_f("{} heads do not divide a dim of {}: choose a divisor of it, or give --head-dim, too",
             sizes.heads, out.dim);
    out.heads = sizes.heads, out.head_dim = out.dim / sizes.heads;
  } else if (sizes.dim > 0 || sizes.head_dim > 0) {
    if (sizes.head_dim > 0) out.head_dim = sizes.head_dim;
    if (out.dim % out.head_dim != 0)
      fail_f("heads {} wide do not divide a dim of {}: choose a multiple of it, or give --heads",
             out.head_dim, out.dim);
    out.heads = out.dim / out.head_dim;
  }
}

}  // namespace

ModelConfig resize(const ModelConfig& model, const ModelSizes& sizes) {
  if (sizes == ModelSizes{}) return model;
  ModelConfig out = model;
  if (sizes.dim > 0) out.dim = sizes.dim;
  if (sizes.layers > 0) out.layers = sizes.layers;
  if (sizes.vocab > 0) out.vocab = sizes.vocab;
  resize_heads(out, sizes);
  if (sizes.kv_heads > 0)
    out.kv_heads = sizes.kv_heads;
  else
    out.kv_heads = out.heads / std::gcd(out.heads, model.heads / model.kv_heads);
  if (sizes.ffn > 0) {
    out.ffn = sizes.ffn;
  } else if (out.dim != model.dim) {
    const int64_t ffn = int64_t{model.ffn} * out.dim / model.dim;
    const int64_t whole = (ffn + kFfnUnit - 1) / kFfnUnit * kFfnUnit;
    out.ffn =
        static_cast<int>(std::min<int64_t>(whole, kMostSize));  // check_config() refuses such sizes
  }
  check_config(out);
  return out;
}

ModelConfig round_widths(ModelConfig model, int multiple) {
  for (int* width : {&model.dim, &model.head_dim, &model.ffn, &model.vocab})
    *width = (*width + multiple - 1) / multiple * multiple;
  check_config(model);
  return model;
}

}  // namespace cria
