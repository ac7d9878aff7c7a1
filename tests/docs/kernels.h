// Every kernel that docs/tile.md quotes, in one list.
#pragma once

#include "docs/debug.h"
#include "docs/elementwise.h"
#include "docs/gemm.h"
#include "docs/persistent.h"
#include "docs/softmax.h"
#include "docs/transpose.h"
#include "docs/vector_add.h"

namespace cria::docs {

template <class T>
using DocKernels =
    KernelList<VectorAddKernels<T>, SoftmaxKernels<T>, CausalSoftmaxKernels<T>, TransposeKernels<T>,
               BiasKernels<T>, GemmKernels<T>, AttentionKernels<T>, NormalizeKernels<T>,
               TakeKernels<T>, ElementwiseKernels<T>, DebugKernels<T>>;

}  // namespace cria::docs
