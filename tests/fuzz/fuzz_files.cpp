// Damaged model files, for so many seconds: whatever is in them, an Error or a result comes out.
//
// usage: cria_fuzz SECONDS [SEED]
// Input k of a seed is always the same. The input in work stays in the folder that is printed first
// when the process dies, or when something other than an Error comes out.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "fuzz/mutate.h"
#include "model/checkpoint.h"

namespace cria::fuzz {
namespace {

namespace fs = std::filesystem;

// A file that is damaged, and what then reads it. Other files of the folder stay as they are.
struct Target {
  std::string name;
  fs::path file;
  std::string seed;  // the valid bytes
  std::function<void()> use;
};

void write_plain(const fs::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string with_header(const Json& header, std::string_view data) {
  const std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  const uint64_t size = text.size();
  std::string out(sizeof size, '\0');
  std::memcpy(out.data(), &size, sizeof size);
  return out + text + std::string(data);
}

std::string mutated(const Target& target, Rng& rng) {
  if (rng.below(2) == 0) return mutate_bytes(target.seed, rng);
  if (target.file.extension() == ".json") {
    return mutate_json(Json::parse(target.seed), rng)
        .dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  uint64_t size = 0;
  std::memcpy(&size, target.seed.data(), sizeof size);
  const std::string_view rest = std::string_view(target.seed).substr(sizeof size);
  return with_header(mutate_json(Json::parse(rest.substr(0, size)), rng), rest.substr(size));
}

// A small model in a folder, whole or in shards.
struct SmallModel {
  std::vector<float> data = std::vector<float>(1000, 1.5f);

  template <class T>
  std::vector<NamedTensor<T>> tensors() {
    return {{"model.embed_tokens.weight", {20, 4}, data.data()},
            {"model.layers.0.self_attn.q_proj.weight", {8, 4}, data.data() + 80},
            {"model.norm.weight", {4}, data.data() + 200}};
  }
  void load(const fs::path& folder) {
    load_weights(folder, tensors<float>());
    // load_weights stops at the first that does not fit; what is accepted must be readable too.
    const ModelTensors stored(folder);
    for (const auto& [name, tensor] : stored.tensors()) {
      std::vector<float> out(NamedTensor<float>{name, tensor.shape, nullptr}.size());
      read_floats(tensor, 0, out);
    }
  }
};

void use_tokenizer(const fs::path& path) {
  const auto tokenizer = load_tokenizer(path);
  const std::string text =
      "The cat's\u00a0 12345 日本 👩‍👩‍👧 <s>\r\n\n \xff\xc3 </s><|end|>  end ";
  const std::vector<int> tokens = tokenizer->encode(text);
  tokenizer->decode(tokens);
  for (const int token : tokens) tokenizer->decode_token(token);
  for (const int token : tokenizer->ends()) tokenizer->decode_token(token, Special::keep);
}

std::vector<Target> make_targets(const fs::path& root, SmallModel& model) {
  std::vector<Target> out;
  const auto add = [&](const std::string& name, const fs::path& file, std::function<void()> use) {
    use();  // the seed itself must be good
    out.push_back({name, file, read_text(file), std::move(use)});
  };

  const fs::path whole = root / "whole", shards = root / "shards";
  fs::create_directory(shards);
  save_model(whole,
             {.config = find_preset("debug").model, .weights = model.tensors<const float>()});
  write_model_tensors(shards, model.tensors<const float>(), DType::bf16, 100);
  add("safetensors", whole / "model.safetensors", [=, &model] { model.load(whole); });
  add("config", whole / "config.json", [=] { load_config(whole); });
  add("index", shards / "model.safetensors.index.json", [=, &model] { model.load(shards); });
  add("shard", shards / "model-00001-of-00002.safetensors", [=, &model] { model.load(shards); });

  const CheckpointFolder run(root / "run");
  const fs::path step = run.save(1, {.config = find_preset("debug").model, .weights = {}},
                                 {model.tensors<const float>(), {{"step", 1}}}, 1);
  const auto resume = [=, &model] { load_training(step, model.tensors<float>()); };
  add("optimizer", step / "optimizer.safetensors", resume);
  add("training", step / "training.json", resume);

  for (const char* kind : {"gpt2", "smollm", "llama3", "qwen2", "llama2", "metaspace"}) {
    const fs::path folder = root / kind;
    fs::create_directory(folder);
    fs::copy_file(
        fs::path(CRIA_SOURCE_DIR) / "tests/model/fixtures" / (std::string(kind) + ".json"),
        folder / "tokenizer.json");
    write_plain(folder / "tokenizer_config.json",
                R"({"add_bos_token": true, "bos_token": "<s>", "eos_token": {"content": "</s>"}})");
    add(kind, folder / "tokenizer.json", [=] { use_tokenizer(folder); });
  }
  write_plain(root / "gpt2" / "generation_config.json",
              R"({"bos_token_id": 1, "eos_token_id": [2, 7]})");
  for (const char* file : {"tokenizer_config", "generation_config"})
    add(file, root / "gpt2" / (std::string(file) + ".json"), [=] { use_tokenizer(root / "gpt2"); });
  return out;
}

struct Tally {
  uint64_t accepted = 0, refused = 0;
};

// False when something other than an Error came out.
bool try_one(const Target& target, const std::string& bytes, Tally& tally) {
  write_plain(target.file, bytes);
  try {
    target.use();
    ++tally.accepted;
  } catch (const Error& error) {
    ++tally.refused;
    if (std::string_view(error.what()).find(target.file.parent_path().string()) ==
        std::string_view::npos) {
      std::cerr << "the message names no file: " << error.what() << '\n';
      return false;
    }
  } catch (const std::exception& error) {
    std::cerr << "not an Error: " << error.what() << '\n';
    return false;
  }
  write_plain(target.file, target.seed);
  return true;
}

int run(double seconds, uint64_t seed) {
  std::string name = (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
                     "cria-fuzz-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) fail("cannot make a folder for damaged files");
  const fs::path root = name;
  std::cout << "seed " << seed << ", files in " << root.string() << std::endl;

  SmallModel model;
  const std::vector<Target> targets = make_targets(root, model);
  std::vector<Tally> tallies(targets.size());
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (uint64_t k = 0; std::chrono::steady_clock::now() < end; ++k) {
    const size_t which = k % targets.size();
    Rng rng(seed, k);
    if (!try_one(targets[which], mutated(targets[which], rng), tallies[which])) {
      std::cerr << "input " << k << " of seed " << seed << ": " << targets[which].file << '\n';
      return 1;
    }
  }
  for (size_t i = 0; i < targets.size(); ++i)
    std::cout << targets[i].name << ": " << tallies[i].refused << " refused, "
              << tallies[i].accepted << " accepted\n";
  fs::remove_all(root);
  return 0;
}

}  // namespace
}  // namespace cria::fuzz

int main(int count, char** words) {
  if (count < 2 || count > 3) {
    std::cerr << "usage: cria_fuzz SECONDS [SEED]\n";
    return 2;
  }
  const uint64_t seed =
      count == 3 ? std::strtoull(words[2], nullptr, 10) : static_cast<uint64_t>(std::time(nullptr));
  try {
    return cria::fuzz::run(std::atof(words[1]), seed);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
