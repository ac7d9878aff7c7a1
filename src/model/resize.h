// A model like another one, of other sizes.
#pragma once

#include "model/config.h"

namespace cria {

// Sizes to change; 0 leaves one to what the others make of it.
struct ModelSizes {
  int dim = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn = 0, vocab = 0;

  bool operator==(const ModelSizes&) const = default;
};

// The model with these sizes. What follows from them unless it is given, too:
//   heads and head_dim  heads * head_dim = dim, heads as wide as they were if only dim changes
//   kv_heads            as many heads share one as before, or as many of them as divide the heads
//   ffn                 as many times dim as it was, up to a multiple of 16
// An Error when there can be no such model. The same sizes once more change nothing.
ModelConfig resize(const ModelConfig& model, const ModelSizes& sizes);

// The model with every width (of the model, its heads, ffn and vocabulary) rounded up to a multiple.
ModelConfig round_widths(ModelConfig model, int multiple);

}  // namespace cria
