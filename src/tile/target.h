// Chooses the target of this translation unit: exactly one of CRIA_TARGET_CUDA, CRIA_TARGET_CPU and
// CRIA_TARGET_TRACE, or none in ordinary host code, which sees kernels' arguments but never their
// bodies. Every target defines the same names in an inline namespace of its own.
#pragma once

#include "tile/kernel.h"
#include "tile/layout.h"
#include "tile/offsets.h"
#include "tile/operations.h"
#include "tile/shape.h"

#if defined(CRIA_TARGET_CUDA)
#define CRIA_FN __device__ __forceinline__
#include "tile/cuda/program.h"
#elif defined(CRIA_TARGET_CPU)
#define CRIA_FN inline __attribute__((always_inline))
#include "tile/cpu/program.h"
#elif defined(CRIA_TARGET_TRACE)
#define CRIA_FN inline
#include "tile/trace/program.h"
#else
#define CRIA_FN inline
namespace cria::tile {
inline namespace host {
inline constexpr bool kOnGpu = false, kHasTf32 = true;
template <class T, int Rows, int Cols, int Count = 1>
struct SharedTile;
template <int Rows, int Cols, int Count>
struct SavedAccumulators;
// What bodies call on plain numbers; bodies are parsed here, though never compiled.
#define CRIA_TILE_FUNCTION(name) float name(float);
CRIA_TILE_FUNCTIONS(CRIA_TILE_FUNCTION)
#undef CRIA_TILE_FUNCTION
float max(float, float), min(float, float);
template <class T>
float rounded_to(float);
}  // namespace host
}  // namespace cria::tile
#endif
