#include "model/checkpoint.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <numeric>

#include "base/rng.h"
#include "support/files.h"
#include "support/places.h"

namespace cria {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;

ModelConfig tiny_config(bool tied = true) {
  ModelConfig config = find_preset("debug").model;
  config.layers = 1;
  config.tied = tied;
  return config;
}

// A model with names, shapes and numbers of its own.
struct Model {
  explicit Model(const ModelConfig& c, float first = 0) : config(c), shapes(make_shapes(c)) {
    for (const auto& [name, shape] : shapes) {
      offsets.push_back(data.size());
      data.resize(data.size() + NamedTensor<float>{name, shape, nullptr}.size());
    }
    std::iota(data.begin(), data.end(), first);
  }

  static std::vector<std::pair<std::string, std::vector<int64_t>>> make_shapes(
      const ModelConfig& c) {
    std::vector<std::pair<std::string, std::vector<int64_t>>> out = {
        {"model.embed_tokens.weight", {c.vocab, c.dim}}, {"model.norm.weight", {c.dim}}};
    if (!c.tied) out.push_back({"lm_head.weight", {c.vocab, c.dim}});
    return out;
  }

  template <class T>
  std::vector<NamedTensor<T>> tensors(const std::string& prefix = "") {
    std::vector<NamedTensor<T>> out;
    for (size_t i = 0; i < shapes.size(); ++i)
      out.push_back({prefix + shapes[i].first, shapes[i].second, data.data() + offsets[i]});
    return out;
  }
  ModelFiles files() { return {.config = config, .weights = tensors<const float>()}; }

  ModelConfig config;
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
  std::vector<size_t> offsets;
  std::vector<float> data;
};

TEST(Checkpoint, ModelRoundTrip) {
  const TemporaryFolder folder;
  for (const bool tied : {true, false}) {
    Model saved(tiny_config(tied), 5), loaded(tiny_config(tied));
    ModelFiles files = saved.files();
    const auto tokenizer = make_byte_tokenizer();
    files.tokenizer = tokenizer.get();
    save_model(folder / "m", files);
    EXPECT_EQ(load_config(folder / "m"), saved.config);
    load_weights(folder / "m", loaded.tensors<float>());
    EXPECT_EQ(loaded.data, saved.data);
    EXPECT_TRUE(fs::exists(folder / "m" / "tokenizer.json"));
    EXPECT_EQ(read_json(folder / "m" / "config.json")["torch_dtype"], "float32");
  }
}

TEST(Checkpoint, SuperfluousTensorsAreAllowed) {
  const TemporaryFolder folder;
  Model saved(tiny_config()), loaded(tiny_config(), 9);
  ModelFiles files = saved.files();
  files.weights.push_back({"lm_head.weight", {2}, saved.data.data()});
  files.weights.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}, saved.data.data()});
  save_model(folder / "m", files);
  load_weights(folder / "m", loaded.tensors<float>());
  EXPECT_EQ(loaded.data, saved.data);
}

// The same tensors under other names.
std::vector<NamedTensor<const float>> renamed(Model& model,
                                              const std::map<std::string, std::string>& names) {
  auto out = model.tensors<const float>();
  for (auto& tensor : out) tensor.name = names.at(tensor.name);
  return out;
}

TEST(Checkpoint, ATiedMatrixMayHaveEitherName) {
  const TemporaryFolder folder;
  Model saved(tiny_config(), 5), loaded(tiny_config());
  write_model_tensors(folder.path(),
                      renamed(saved, {{"model.embed_tokens.weight", "lm_head.weight"},
                                      {"model.norm.weight", "model.norm.weight"}}));
  load_weights(folder.path(), loaded.tensors<float>());
  EXPECT_EQ(loaded.data, saved.data);
  // Untied, the embedding is missing, whatever the head is.
  Model untied(tiny_config(false));
  expect_error([&] { load_weights(folder.path(), untied.tensors<float>()); },
               {"model.safetensors", "no tensor \"model.embed_tokens.weight\""});
}

TEST(Checkpoint, NamesMayLackTheModel) {
  const TemporaryFolder folder;
  for (const bool tied : {true, false}) {
    Model saved(tiny_config(tied), 5), loaded(tiny_config(tied));
    write_model_tensors(folder.path(),
                        renamed(saved, {{"model.embed_tokens.weight", "embed_tokens.weight"},
                                        {"model.norm.weight", "norm.weight"},
                                        {"lm_head.weight", "lm_head.weight"}}));
    load_weights(folder.path(), loaded.tensors<float>());
    EXPECT_EQ(loaded.data, saved.data);
  }
  // Not both: which of them would it be?
  Model saved(tiny_config());
  auto tensors = saved.tensors<const float>();
  tensors.push_back(tensors[1]);
  tensors.back().name = "norm.weight";
  write_model_tensors(folder.path(), tensors);
  expect_error([&] { load_weights(folder.path(), saved.tensors<float>()); },
               {"\"norm.weight\"", "no place"});
  // Messages have the name that the file has.
  Model wide(tiny_config());
  wide.shapes[1].second = {wide.config.dim / 2};
  write_model_tensors(folder.path(),
                      renamed(wide, {{"model.embed_tokens.weight", "embed_tokens.weight"},
                                     {"model.norm.weight", "norm.weight"}}));
  expect_error([&] { load_weights(folder.path(), saved.tensors<float>()); },
               {"\"norm.weight\"", "shape"});
}

TEST(Checkpoint, TheEndsOfTextsAreKept) {
  const TemporaryFolder folder;
  const fs::path fixture = test::in_repository("tests/model/fixtures/gpt2.json");
  fs::copy_file(fixture, folder / "tokenizer.json");
  const auto saved_config = [&](const char* ids) {
    write_text(folder / "config.json", ids);
    const auto tokenizer = load_tokenizer(folder.path());
    Model model(tiny_config());
    ModelFiles files = model.files();
    files.tokenizer = tokenizer.get();
    save_model(folder / "m", files);
    EXPECT_EQ(load_tokenizer(folder / "m")->ends(), tokenizer->ends());
    return read_json(folder / "m" / "config.json");
  };
  const Json one = saved_config(R"({"bos_token_id": 0, "eos_token_id": 2})");
  EXPECT_EQ(one["bos_token_id"], 0);
  EXPECT_EQ(one["eos_token_id"], 2);
  EXPECT_EQ(saved_config(R"({"eos_token_id": [5, 300]})")["eos_token_id"], (Json{5, 300}));
}

TEST(Checkpoint, PointersOfGitLfsAreExplained) {
  const TemporaryFolder folder;
  Model model(tiny_config());
  ModelFiles files = model.files();
  const auto tokenizer = make_byte_tokenizer();
  files.tokenizer = tokenizer.get();
  const auto expect_explained = [&](const char* name, const std::function<void()>& use) {
    save_model(folder / "m", files);
    use();
    write_text(folder / "m" / name,
               "version https://git-lfs.github.com/spec/v1\noid sha256:"
               "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n");
    expect_error(use, {std::string("m/") + name, "Git LFS pointer", "git lfs pull"});
  };
  expect_explained("model.safetensors",
                   [&] { load_weights(folder / "m", model.tensors<float>()); });
  expect_explained("config.json", [&] { load_config(folder / "m"); });
  expect_explained("tokenizer.json", [&] { load_tokenizer(folder / "m"); });
}

TEST(Checkpoint, WrongTensorsAreNamed) {
  const TemporaryFolder folder;
  Model saved(tiny_config()), untied(tiny_config(false));
  save_model(folder / "m", saved.files());
  expect_error([&] { load_weights(folder / "m", untied.tensors<float>()); },
               {"model.safetensors", "no tensor \"lm_head.weight\""});
  auto tensors = saved.tensors<float>();
  std::swap(tensors[0].shape[0], tensors[0].shape[1]);
  expect_error([&] { load_weights(folder / "m", tensors); },
               {"model.safetensors", "\"model.embed_tokens.weight\"", "[256, 64]", "[64, 256]"});
  tensors = saved.tensors<float>();
  tensors.pop_back();
  expect_error([&] { load_weights(folder / "m", tensors); },
               {"model.safetensors", "\"model.norm.weight\"", "no place"});
  expect_error([&] { load_config(folder / "none"); }, {"none/config.json"});
}

TEST(Checkpoint, TrainingRoundTrip) {
  const TemporaryFolder root;
  const CheckpointFolder run(root / "run");
  EXPECT_FALSE(run.latest());
  Model model(tiny_config(), 3), moments(tiny_config(), 7), loaded(tiny_config());
  const fs::path saved =
      run.save(12, model.files(), {moments.tensors<const float>("m."), {{"step", 12}}}, 2);
  EXPECT_EQ(saved.filename(), "step-000012");
  EXPECT_EQ(run.latest(), saved);
  EXPECT_EQ(load_training(saved, loaded.tensors<float>("m."))["step"], 12);
  EXPECT_EQ(loaded.data, moments.data);
  expect_error([&] { load_training(saved, loaded.tensors<float>("v.")); },
               {"optimizer.safetensors", "no place"});
  write_text(saved / "training.json", "[]");
  expect_error([&] { load_training(saved, loaded.tensors<float>("m.")); }, {"training.json"});
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out.push_back(entry.path().filename().string());
  std::ranges::sort(out);
  return out;
}

TEST(Checkpoint, KeepsTheLastOnes) {
  const TemporaryFolder root;
  const CheckpointFolder run(root.path());
  Model model(tiny_config());
  write_text(root / "step-notes.txt", "mine");
  fs::create_directories(root / "step-000007.tmp");  // of a run that was killed
  for (const int64_t step : {10, 20, 30, 2000000})
    run.save(step, model.files(), {{}, Json::object()}, 2);
  EXPECT_EQ(names_in(root.path()),
            (std::vector<std::string>{"latest", "step-000030", "step-2000000", "step-notes.txt"}));
  // An earlier step leaves later ones alone and is the latest all the same.
  run.save(40, model.files(), {{}, Json::object()}, 1);
  EXPECT_EQ(names_in(root.path()),
            (std::vector<std::string>{"latest", "step-000040", "step-2000000", "step-notes.txt"}));
  EXPECT_EQ(run.latest()->filename(), "step-000040");
}

TEST(Checkpoint, ReplacesTheSameStep) {
  const TemporaryFolder root;
  const CheckpointFolder run(root.path());
  Model model(tiny_config());
  run.save(1, model.files(), {{}, {{"try", 1}}}, 1);
  run.save(1, model.files(), {{}, {{"try", 2}}}, 1);
  EXPECT_EQ(load_training(*run.latest(), {})["try"], 2);
  EXPECT_EQ(names_in(root.path()), (std::vector<std::string>{"latest", "step-000001"}));
}

// A limit on the size of files stands in for a disk that is full.
TEST(Checkpoint, AFullDiskCostsTheNewOneOnly) {
  const TemporaryFolder root;
  const CheckpointFolder run(root.path());
  Model model(tiny_config(), 3), loaded(tiny_config());
  run.save(1, model.files(), {{}, Json::object()}, 1);
  rlimit usual = {};
  ::getrlimit(RLIMIT_FSIZE, &usual);
  const rlimit full = {.rlim_cur = 10000, .rlim_max = usual.rlim_max};
  const auto saved_handler = ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &full);
  const std::string message = test::error_of([&] {
    run.save(2, model.files(), {{}, Json::object()}, 1);
  });
  ::setrlimit(RLIMIT_FSIZE, &usual);
  ::signal(SIGXFSZ, saved_handler);
  EXPECT_NE(message.find("model.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("free space"), std::string::npos) << message;
  EXPECT_EQ(run.latest()->filename(), "step-000001");
  load_weights(*run.latest(), loaded.tensors<float>());
  EXPECT_EQ(loaded.data, model.data);
  run.save(3, model.files(), {{}, Json::object()}, 1);
  EXPECT_EQ(names_in(root.path()), (std::vector<std::string>{"latest", "step-000003"}));
}

TEST(Checkpoint, DanglingLatestIsNamed) {
  const TemporaryFolder root;
  for (const char* target : {"step-000009", "../elsewhere", "/etc"}) {
    fs::remove(root / "latest");
    fs::create_symlink(target, root / "latest");
    expect_error([&] { CheckpointFolder(root.path()).latest(); }, {"latest", target});
  }
}

// As after a kill between the first save's last two renames, or a copy that left links out.
TEST(Checkpoint, WithoutALinkTheLastStepIsTheLatest) {
  const TemporaryFolder root;
  const CheckpointFolder run(root.path());
  Model model(tiny_config());
  for (const int64_t step : {5, 2000000, 30})
    run.save(step, model.files(), {{}, {{"step", step}}}, 3);
  fs::create_directory(root / "step-3000000.tmp");
  write_text(root / "step-4000000", "no folder");
  EXPECT_EQ(run.latest(), root / "step-000030");
  fs::remove(root / "latest");
  EXPECT_EQ(run.latest(), root / "step-2000000");
}

// As after `cp -rL`.
TEST(Checkpoint, LatestMustBeALink) {
  const TemporaryFolder root;
  const CheckpointFolder run(root.path());
  Model model(tiny_config());
  const fs::path saved = run.save(5, model.files(), {{}, Json::object()}, 1);
  fs::remove(root / "latest");
  fs::copy(saved, root / "latest", fs::copy_options::recursive);
  expect_error([&] { run.latest(); }, {"latest is no link", "remove or rename"});
  fs::remove_all(root / "latest");
  EXPECT_EQ(run.latest(), saved);
}

TEST(Checkpoint, EveryTruncationIsRefused) {
  const TemporaryFolder root;
  Model model(tiny_config());
  save_model(root.path(), model.files());
  for (const char* name : {"model.safetensors", "config.json"}) {
    const std::string whole = read_text(root / name);
    for (size_t n = whole.size() - 2; n > 0; n -= 1 + n / 8) {  // config.json may lose its newline
      fs::resize_file(root / name, n);
      expect_error(
          [&] {
            load_config(root.path());
            load_weights(root.path(), model.tensors<float>());
          },
          {name});
    }
    write_text(root / name, whole);
  }
}

// Saves steps first, first + 1, ... for ever; a step's numbers all follow from it.
[[noreturn]] void save_for_ever(const fs::path& root, int64_t first) {
  Model model(tiny_config()), moments(tiny_config());
  for (int64_t step = first;; ++step) {
    std::ranges::fill(model.data, static_cast<float>(step));
    std::ranges::fill(moments.data, static_cast<float>(-step));
    // Every third step is saved twice, so that replacing is interrupted too.
    for (int i = 0; i < (step % 3 == 0 ? 2 : 1); ++i)
      CheckpointFolder(root).save(step, model.files(),
                                  {moments.tensors<const float>(), {{"step", step}}}, 2);
  }
}

// The step of the latest checkpoint, which must be whole; 0 when there is none.
int64_t check_latest(const fs::path& root) {
  const auto latest = CheckpointFolder(root).latest();
  if (!latest) return 0;
  Model model(tiny_config()), moments(tiny_config());
  EXPECT_EQ(load_config(*latest), model.config);
  load_weights(*latest, model.tensors<float>());
  const int64_t step = load_training(*latest, moments.tensors<float>())["step"];
  const auto all = [](const std::vector<float>& values, int64_t want) {
    return std::ranges::all_of(values, [&](float x) { return x == static_cast<float>(want); });
  };
  EXPECT_TRUE(all(model.data, step) && all(moments.data, -step)) << step;
  return step;
}

bool has_unfinished(const fs::path& root) {
  const auto names = names_in(root);
  return std::ranges::any_of(names, [](const auto& name) { return name.ends_with(".tmp"); });
}

TEST(Checkpoint, FiftyKillsLeaveAWholeOne) {
  const TemporaryFolder root(test::memory_folder());
  Rng rng(1);
  const auto started = std::chrono::steady_clock::now();
  Model model(tiny_config(), 0);
  CheckpointFolder(root.path() / "warm-up").save(1, model.files(), {{}, Json::object()}, 1);
  const std::chrono::duration<double, std::micro> save_us =
      std::chrono::steady_clock::now() - started;
  fs::create_directory(root / "run");
  const fs::path run = root / "run";
  int64_t step = 0;
  int interrupted = 0;
  for (int kill_count = 0; kill_count < 50; ++kill_count) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        save_for_ever(run, step + 1);
      } catch (...) {
        ::_exit(1);
      }
    }
    ::usleep(rng.below(static_cast<uint32_t>(8 * save_us.count() + 1000)));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "a save failed";
    interrupted += has_unfinished(run);
    const int64_t reached = check_latest(run);
    ASSERT_GE(reached, step) << "a finished checkpoint was lost";
    step = reached;
  }
  EXPECT_GT(step, 0) << "no save was ever finished";
  EXPECT_GT(interrupted, 0) << "no save was ever interrupted";
}

}  // namespace
}  // namespace cria
