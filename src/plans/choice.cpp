#include "plans/choice.h"

#include "base/error.h"
#include "kernels/rope.h"

namespace cria {
namespace {

int64_t tiles(const StageSizes& s, int64_t side) {
  return (s.m + side - 1) / side * ((s.n + side - 1) / side);
}

// Rows of both operands at whole 32 bytes. From 16 bytes on, TMA takes them, but a panel 128 bytes
// wide then lies in five sectors of 32 instead of four.
bool has_whole_sectors(Stage stage, const StageSizes& s) {
  const int64_t a = stage == Stage::linear_dw ? s.m : s.k;
  const int64_t b = stage == Stage::linear_dx || stage == Stage::linear_dw ? s.n : s.k;
  return a % 16 == 0 && b % 16 == 0;
}

}  // namespace

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::qkv:
      return "qkv";
    case Stage::gate_up:
      return "gate_up";
    case Stage::linear:
      return "linear";
    case Stage::linear_dx:
      return "linear_dx";
    case Stage::linear_dw:
      return "linear_dw";
    case Stage::weight_gradients:
      return "weight_gradients";
  }
  fail("there is no such stage of a plan");
}

Choice Chooser::choose(Stage stage, StageSizes s) const {
  const auto own = [&](const char* why) { return Choice{stage, s, true, why}; };
  const auto library = [&](const char* why) { return Choice{stage, s, false, why}; };
  if (backend != Backend::cuda)
    return library("on a CPU the library multiplies, and other kernels stay in its cache");
  if (size_of(dtype) != 2)
    return library("cria's kernels for tensor cores are for 16-bit elements");

  // Multiply-adds. Cria's kernels begin under the end of the one before, which is what counts for
  // tiny products; large ones are limited by power, and the library's need less of it.
  constexpr double kTiny = 0x1p29, kLarge = 0x1p32, kLargePair = 0x1p33;
  constexpr int64_t kTile = 128, kSmallTile = 64, kDeep = 2048, kDeepGroup = 8192;
  constexpr double kLeastFill = 0.8;
  const char* sectors = "rows begin within a sector of memory, which costs cria's kernels more";
  const bool fills_cores = tiles(s, kSmallTile) >= cores;
  switch (stage) {
    case Stage::qkv:
      if (!kernels::can_fuse_rope(head_dim))
        return library("heads of 64 or 128 can be turned there");
      if (s.terms() >= kLarge && !has_whole_sectors(stage, s)) return library(sectors);
      return own("turns queries and keys where they are made");
    case Stage::gate_up:
      if (s.terms() >= kLargePair && !has_whole_sectors(stage, s)) return library(sectors);
      return own("never puts both products into memory");
    case Stage::weight_gradients:
      if (s.terms() >= kLarge) return library("large: the library's products need less power");
      if (!fills_cores && s.k > kDeepGroup)
        return library("few and deep: the library splits the depth");
      return own("one launch for a block");
    case Stage::linear:
    case Stage::linear_dx:
    case Stage::linear_dw:
      break;
  }
  if (s.terms() >= kLarge) return library("large: the library's products need less power");
  if (!fills_cores && s.k > kDeep && stage == Stage::linear_dw)
    return library("few and deep: the library splits the depth");
  if (s.terms() < kTiny) return own("tiny: begins under the end of the kernel before it");
  if (!has_whole_sectors(stage, s)) return library(sectors);
  if (double(s.m) * double(s.n) < kLeastFill * double(tiles(s, kTile) * kTile * kTile))
    return library("cria's tiles would be half empty");
  if (!fills_cores) return library("few and deep: the library splits the depth");
  return own("small: begins under the end of the kernel before it");
}

}  // namespace cria
