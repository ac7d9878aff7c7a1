#include "cli/model_options.h"

#include <filesystem>

#include "base/format.h"
#include "cli/problem_options.h"
#include "model/checkpoint.h"

namespace cria {
namespace {

// A preset by name, a config.json, or a folder with one in it; a folder that is called like a
// preset is ./small.
Preset find_model(const std::string& name) {
  namespace fs = std::filesystem;
  if (is_preset(name) || !fs::exists(name)) return find_preset(name);
  const ModelConfig model =
      fs::is_directory(name) ? load_config(name) : config_from_json(read_json(name), name);
  return {name, model, 1, std::min(model.context, 1024)};
}

}  // namespace

ElementType parse_precision(const std::string& text, Device device) {
  const bool cuda = device.backend == Backend::cuda;
  if (text.empty()) return {cuda ? DType::bf16 : DType::f32, Precision::full};
  if (text == "f32") return {DType::f32, Precision::full};
  if (text == "bf16") return {DType::bf16, Precision::full};
  if (text == "tf32") {
    if (!cuda) fail("tf32 is a precision of NVIDIA's tensor cores: use --dtype f32 on the CPU");
    return {DType::f32, Precision::tf32};
  }
  fail_f("--dtype {} is none of f32, tf32 and bf16", text);
}

TrainerOptions ModelOptions::trainer() const {
  Preset preset = find_model(config);
  preset.model = resize(preset.model, sizes);
  const Device where = parse_device(device);
  const ElementType type = parse_precision(dtype, where);
  TrainerOptions out{.model = preset.model,
                     .device = where,
                     .dtype = type.dtype,
                     .precision = type.precision,
                     .batch = batch > 0 ? batch : preset.batch,
                     .seq = seq > 0 ? seq : preset.seq,
                     .accumulate = accumulate,
                     .recompute = recompute};
  out.model.context = std::max(out.model.context, out.seq);
  return out;
}

std::string ModelOptions::model_name() const {
  std::string out;
  for (const SizeOption& option : size_options())
    if (const int size = sizes.*option.size; size > 0)
      out += fmt::format("{} {} {}", out.empty() ? " with" : ",", option.name + 2, size);
  return config + out;
}

std::span<const SizeOption> size_options() {
  static constexpr SizeOption options[] = {
      {"--dim", &ModelSizes::dim, "Width of the model, instead of the config's"},
      {"--layers", &ModelSizes::layers, "Blocks, instead of the config's"},
      {"--heads", &ModelSizes::heads,
       "Heads (default: the config's, with --dim as many as it has room for)"},
      {"--kv-heads", &ModelSizes::kv_heads,
       "Heads for keys and values, a divisor of --heads (default: shared as in the config)"},
      {"--head-dim", &ModelSizes::head_dim,
       "Width of a head, even (default: the config's, or what --heads makes of --dim)"},
      {"--ffn", &ModelSizes::ffn, "Width of the feed-forward part (default: grows with --dim)"},
      {"--vocab", &ModelSizes::vocab, "Tokens the model knows, instead of the config's"}};
  return options;
}

void add_model_options(CLI::App& command, ModelOptions& o) {
  command
      .add_option("--config", o.config,
                  "debug, small (the default), medium, llama-1b, or a config.json or its folder")
      ->option_text("NAME");
  for (const SizeOption& option : size_options())
    command.add_option(option.name, o.sizes.*option.size, option.help)
        ->check(CLI::Range(1, 1 << 24))
        ->option_text("N");
  add_device_option(command, o.device);
  command
      .add_option(
          "--dtype", o.dtype,
          "f32, tf32 (CUDA), or bf16 with f32 weights (default: bf16 on CUDA, f32 on the CPU)")
      ->option_text("TYPE");
  command.add_option("--batch", o.batch, "Sequences per batch (default: the preset's, else 1)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  command
      .add_option("--seq", o.seq,
                  "Tokens per sequence (default: the preset's, else the context, at most 1024)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
  command.add_option("--seed", o.seed, "Of weights and data (default: 0)")->option_text("N");
}

void add_plan_option(CLI::App& command, std::string& plan) {
  take_plan_names(
      *command
           .add_option("--plan", plan,
                       "How to run the model: " + list_plans() + ", or v1, v2, v3 (default: flash)")
           ->option_text("PLAN"));
}

void take_plan_names(CLI::Option& option) {
  option.transform([](const std::string& name) { return find_plan(name); });
}

std::string list_plans() {
  std::string out;
  for (const std::string& name : plan_names()) out += (out.empty() ? "" : ", ") + name;
  return out;
}

}  // namespace cria
