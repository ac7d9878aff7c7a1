// The options of commands that train: which model, plan, device and precision, and the batch.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "model/resize.h"
#include "train/trainer.h"

namespace cria {

struct ModelOptions {
  std::string config = "small";
  ModelSizes sizes = {};  // instead of those of config
  std::string device = "auto";
  std::string dtype = {};  // empty: bf16 on CUDA, f32 on the CPU
  int batch = 0;           // 0: the preset's
  int seq = 0;
  int accumulate = 1;
  bool recompute = false;
  uint64_t seed = 0;

  // With the default plan and optimizer.
  TrainerOptions trainer() const;
  // "small", "small with dim 256, layers 4"
  std::string model_name() const;
};

// --config, the sizes of size_options(), --device, --dtype, --batch, --seq and --seed.
void add_model_options(CLI::App& command, ModelOptions& options);

// --dim and so on, which change the model that --config names.
struct SizeOption {
  const char* name;
  int ModelSizes::*size;
  const char* help;
};
std::span<const SizeOption> size_options();

// --plan; its default is the fastest.
void add_plan_option(CLI::App& command, std::string& plan);
// Has an option take the names of plans, or their versions v1, v2, v3.
void take_plan_names(CLI::Option& option);

struct ElementType {
  DType dtype;
  Precision precision;
};
// f32, tf32 or bf16; empty: what the device does best.
ElementType parse_precision(const std::string& text, Device device);

// "baseline, fused, flash"
std::string list_plans();

}  // namespace cria
