// cria generate: text from a model in Hugging Face's layout. cria logits: its raw predictions.
#include "train/generate.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "base/format.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/json_results.h"
#include "cli/list_option.h"
#include "cli/model_options.h"
#include "cli/problem_options.h"
#include "model/checkpoint.h"
#include "train/state.h"

namespace cria {
namespace {

struct GenerateCommand {
  std::string model, prompt, device = "auto", dtype, json;
  int tokens = 200;
  int context = 0;
  SamplerOptions sampler;
  bool quiet = false, special = false;
};

// A decoder without its cache's capacity, which may depend on the prompt.
DecoderOptions decoder_options(const std::string& folder, const std::string& device,
                               const std::string& dtype) {
  const Device where = parse_device(device);
  if (!dtype.empty() && dtype != "f32" && dtype != "bf16")
    fail_f("--dtype {} is neither f32 nor bf16", dtype);
  return {
      .model = load_config(folder), .device = where, .dtype = parse_precision(dtype, where).dtype};
}

std::unique_ptr<Decoder> load_decoder(const std::string& folder, const DecoderOptions& options) {
  const WeightMap map(options.model);
  return make_decoder(options, map,
                      [&](std::span<float> flat) { load_weights(map, folder, flat); });
}

int run_generate(const GenerateCommand& o) {
  DecoderOptions how = decoder_options(o.model, o.device, o.dtype);
  const auto tokenizer = load_tokenizer(o.model);
  const std::vector<int32_t> prompt = prompt_tokens(*tokenizer, o.prompt);
  // A context of 131072 is more than most need, and more than many machines hold.
  constexpr int kUsual = 4096;
  how.capacity = o.context > 0 ? o.context : std::min(how.model.context, kUsual);
  if (std::ssize(prompt) > how.capacity)
    fail_f(
        "the prompt has {} tokens, and the context holds {}: give a larger --context, or a shorter "
        "prompt",
        prompt.size(), how.capacity);
  const std::unique_ptr<Decoder> decoder = load_decoder(o.model, how);
  TokenSampler sampler(o.sampler);
  const Special special = o.special ? Special::keep : Special::drop;

  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::optional<Clock::time_point> first;
  double device_us = 0;  // for the tokens after the first
  const auto tokens =
      generate(*decoder, sampler, prompt, o.tokens, tokenizer->ends(), [&](int32_t token) {
        if (!first) {
          first = Clock::now();
          fmt::print("{}", o.prompt);
        } else {
          device_us += decoder->device_us();
        }
        const std::string text = tokenizer->decode_token(token, special);
        std::fwrite(text.data(), 1, text.size(), stdout);
        std::fflush(stdout);
        return !interrupted();  // watched from here on: before, there was nothing to finish
      });
  if (!first) fmt::print("{}", o.prompt);
  fmt::print("\n");
  std::fflush(stdout);  // before what goes to stderr
  const auto end = Clock::now();
  const double prompt_s = std::chrono::duration<double>(first.value_or(end) - start).count();
  const double rest_s = std::chrono::duration<double>(end - first.value_or(end)).count();
  const auto rest = tokens.empty() ? 0. : double(tokens.size() - 1);
  const double rate = rest_s > 0 ? rest / rest_s : 0;
  const double device_ms = rest > 0 ? device_us * 1e-3 / rest : 0;
  const bool full = std::ssize(tokens) < o.tokens && decoder->length() == how.capacity;
  if (!o.quiet)
    fmt::print(stderr,
               "{} tokens of prompt in {:.2f} s, then {} at {:.1f} tokens/s, {:.3f} ms of each on "
               "the device{}\n",
               prompt.size(), prompt_s, tokens.size(), rate, device_ms,
               full ? fmt::format("; the context of {} tokens is full", how.capacity) : "");
  if (!o.json.empty())
    write_json(o.json, {{"prompt_tokens", prompt},
                        {"tokens", tokens},
                        {"text", tokenizer->decode(tokens, special)},
                        {"prompt_s", prompt_s},
                        {"tokens_per_s", rate},
                        {"device_ms_per_token", device_ms}});
  return 0;
}

struct LogitsCommand {
  std::string model, device = "auto", dtype, json;
  std::vector<int32_t> tokens;
};

int run_logits(const LogitsCommand& o) {
  DecoderOptions how = decoder_options(o.model, o.device, o.dtype);
  how.capacity = static_cast<int>(o.tokens.size());
  const std::vector<float> flat = load_decoder(o.model, how)->feed_all(o.tokens);
  Json logits = Json::array();
  const size_t vocab = how.model.vocab;
  for (size_t i = 0; i < o.tokens.size(); ++i) {
    const auto row = std::span(flat).subspan(i * vocab, vocab);
    logits.push_back(std::vector<float>(row.begin(), row.end()));
    const auto best = std::ranges::max_element(row) - row.begin();
    fmt::print("after token {:>6} at {:>4}: likeliest {:>6}, logit {:.5f}\n", o.tokens[i], i, best,
               row[best]);
  }
  if (!o.json.empty()) write_json(o.json, {{"tokens", o.tokens}, {"logits", logits}});
  return 0;
}

void add_dtype_option(CLI::App& command, std::string& dtype) {
  command
      .add_option("--dtype", dtype,
                  "f32 or bf16, of weights and activations (default: bf16 on CUDA, f32 on the CPU)")
      ->option_text("TYPE");
}

void add_folder_option(CLI::App& command, std::string& model) {
  command
      .add_option(
          "--model", model,
          "Folder with config.json, model.safetensors and, unless it speaks bytes, tokenizer.json")
      ->required()
      ->option_text("DIR");
}

}  // namespace

void add_generate_command(CLI::App& program, Invocation& invocation) {
  auto o = std::make_shared<GenerateCommand>();
  CLI::App* command = program.add_subcommand("generate", "Let a model continue a text");
  command->add_option("PROMPT", o->prompt, "The text to continue (default: a new line)")
      ->option_text(" ");
  add_folder_option(*command, o->model);
  command->add_option("--tokens", o->tokens, "How many at most (default: 200)")
      ->check(CLI::Range(1, 1 << 24))
      ->option_text("N");
  command
      ->add_option("--temperature", o->sampler.temperature,
                   "0 takes the likeliest token, higher is bolder (default: 0.8)")
      ->option_text("X");
  command->add_option("--top-k", o->sampler.top_k, "Only the N likeliest tokens (default: 0, all)")
      ->option_text("N");
  command
      ->add_option("--top-p", o->sampler.top_p,
                   "Only the likeliest tokens that together have this probability (default: 1)")
      ->option_text("P");
  command->add_option("--seed", o->sampler.seed, "The same seed gives the same text (default: 0)")
      ->option_text("N");
  command
      ->add_option("--context", o->context,
                   "Tokens the cache holds (default: the model's context, at most 4096)")
      ->check(CLI::Range(1, 1 << 24))
      ->option_text("N");
  add_device_option(*command, o->device);
  add_dtype_option(*command, o->dtype);
  command->add_flag("--special", o->special, "Show tokens that stand for no text, too");
  command->add_flag("--quiet", o->quiet, "Only the text, no timing");
  add_json_option(*command, o->json, "Write tokens, text and speed to this file");
  command->footer("For example: cria generate --model run/latest \"Once upon\"");
  command->callback([o, &invocation] { invocation.exit_code = run_generate(*o); });
}

void add_logits_command(CLI::App& program, Invocation& invocation) {
  auto o = std::make_shared<LogitsCommand>();
  CLI::App* command =
      program.add_subcommand("logits", "Show what a model predicts after each of some tokens");
  add_folder_option(*command, o->model);
  add_list_option(*command, "--tokens", o->tokens, "Numbers of tokens, e.g. 1,2,3")
      ->required()
      ->option_text("N,...");
  add_device_option(*command, o->device);
  add_dtype_option(*command, o->dtype);
  add_json_option(*command, o->json, "Write all logits to this file");
  command->footer("For example: cria logits --model run/latest --tokens 72,105");
  command->callback([o, &invocation] { invocation.exit_code = run_logits(*o); });
}

}  // namespace cria
