// decode: tokens per second of a single stream, against reading memory.
#include <fmt/format.h>

#include "base/durable_file.h"
#include "base/json.h"
#include "bench/tools.h"
#include "cli/interrupt.h"
#include "cli/problem_options.h"
#include "lab/ceilings.h"
#include "lab/compare.h"
#include "lab/describe_run.h"
#include "plans/decoder.h"
#include "runtime/recorder.h"

namespace cria::claims {
namespace {

constexpr int kCapacity = 2048;  // tokens that the cache holds

struct DecodeOptions {
  std::string device = "auto", dtype, json;
  int layers = 22, past = 64;
  double seconds = 20;
  bool kernels = false;
};

// TinyLlama-1.1B's sizes.
ModelConfig tiny_llama(int layers) {
  return {.dim = 2048,
          .layers = layers,
          .heads = 32,
          .kv_heads = 4,
          .head_dim = 64,
          .ffn = 5632,
          .vocab = 32000,
          .context = kCapacity,
          .tied = false};
}

// Where a token's time goes, with every launch timed on its own.
std::string kernel_table(Decoder& decoder, int32_t token) {
  const int past = decoder.length();
  PlanFigures figures{.plan = "decoding"};
  Recorder recorder(Recorder::Mode::time);
  decoder.stream().set_recorder(&recorder);
  for (int i = 0; i < 2; ++i) {  // the first makes the recorder's events
    recorder.clear();
    decoder.feed({&token, 1});
    decoder.rewind(past);
  }
  figures.record.launches = recorder.records();
  decoder.stream().set_recorder(nullptr);
  return to_kernel_table(figures);
}

void run(const DecodeOptions& options, const std::string& command_line) {
  const Device device = parse_device(options.device);
  if (!options.json.empty()) check_writable(options.json);
  const DType dtype = options.dtype.empty()
                          ? (device.backend == Backend::cuda ? DType::bf16 : DType::f32)
                          : parse_dtype(options.dtype);
  const ModelConfig model = tiny_llama(options.layers);
  const WeightMap map(model);
  const std::unique_ptr<Decoder> decoder =
      make_decoder({.model = model, .device = device, .dtype = dtype, .capacity = kCapacity}, map,
                   [&](std::span<float> flat) { init_weights(map, 1, flat); });
  const std::vector<int32_t> prompt(options.past, 1);
  decoder->feed(prompt);
  const int32_t token = 2;
  // A token reads every weight but the embedding's table, of which it reads a row.
  const double bytes =
      double(map.parameters() - int64_t{model.vocab} * model.dim) * double(size_of(dtype));
  Timing on_device;
  const Contender one_token{"a token",
                            [&](Stream&, int) {
                              decoder->feed({&token, 1});
                              decoder->rewind(options.past);
                              on_device.samples_us.push_back(decoder->device_us());
                            },
                            false};
  const Ceiling read = read_ceiling(device, bytes);
  MeasureOptions how{.budget_s = options.seconds, .min_rounds = 5};
  how.stop = &interrupted();
  const auto timings = measure(decoder->stream(), {one_token, read.contender}, how);
  const Ratio share = speed_ratio(timings[0], timings[1]);
  const double token_us = timings[0].median_us(), device_us = on_device.median_us();
  fmt::print(
      "decoding {:.2f} G parameters in {} on {}, one stream after {} tokens:\n"
      "  {:.3f} ms a token, {:.3f} of it on the device, {:.2f} tokens/s, {:.1f} GB/s of weights\n"
      "  reading alone: {:.1f} GB/s; share {:.1f} % (p10 {:.1f}, p90 {:.1f})\n",
      double(map.parameters()) * 1e-9, name_of(dtype), name_of(device), options.past,
      token_us * 1e-3, device_us * 1e-3, 1e6 / token_us, bytes / token_us * 1e-3,
      read.rate(timings[1].median_us()), 100 * share.median, 100 * share.p10, 100 * share.p90);
  if (options.kernels) fmt::print("\n{}", kernel_table(*decoder, token));
  if (options.json.empty()) return;
  Json json = describe_run(device, command_line);
  json["token_ms"] = token_us * 1e-3;
  json["device_ms"] = device_us * 1e-3;
  json["gb_per_s"] = bytes / token_us * 1e-3;
  json["share_of_read"] = {{"median", share.median}, {"p10", share.p10}, {"p90", share.p90}};
  write_json(options.json, json);
}

}  // namespace

void add_decode_command(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<DecodeOptions>();
  CLI::App* command = program.add_subcommand(
      "decode", "Time the decoding of a single stream against reading memory");
  add_device_option(*command, options->device);
  command->add_option("--dtype", options->dtype, "f32 or bf16");
  command->add_option("--layers", options->layers, "Of TinyLlama's 22")
      ->check(CLI::Range(1, 1 << 10))
      ->capture_default_str();
  command->add_option("--past", options->past, "Tokens in the cache")
      ->check(CLI::Range(1, kCapacity - 1))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "To spend on measuring")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  command->add_flag(
      "--kernels", options->kernels,
      "Also where a token's time goes, each launch timed on its own, without a graph");
  command->add_option("--json", options->json, "Write all figures to this file");
  command->footer("For example: cria_bench decode --device cpu --layers 2 --seconds 5");
  command->callback([options, &invocation] { run(*options, invocation.command_line); });
}

}  // namespace cria::claims
