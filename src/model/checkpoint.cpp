#include "model/checkpoint.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/durable_file.h"
#include "base/format.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfigFile = "config.json";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kTrainingFile = "training.json";
constexpr const char* kLatest = "latest";
constexpr const char* kLock = ".lock";
constexpr const char* kUnfinished = ".tmp";  // ends the name of what is being made or removed

constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";

using StoredTensors = std::map<std::string, StoredTensor>;

// Tensors that files may have and cria has no use for.
bool is_superfluous(std::string_view name) {
  return name == kHead || name.ends_with(".rotary_emb.inv_freq");
}

// Files written without the head leave "model." out of the names, and the matrix that embedding and
// head share may be there under either name. The tensors under those that the model gives them:
StoredTensors under_own_names(const StoredTensors& stored,
                              std::span<const NamedTensor<float>> wanted) {
  std::set<std::string> names;
  for (const NamedTensor<float>& tensor : wanted) names.insert(tensor.name);
  StoredTensors out;
  for (const auto& [name, tensor] : stored) {
    const std::string longer = "model." + name;
    const bool shortened = names.contains(longer) && !stored.contains(longer);
    out.emplace(shortened ? longer : name, tensor);
  }
  if (names.contains(kEmbedding) && !names.contains(kHead) && !out.contains(kEmbedding)) {
    if (auto shared = out.extract(kHead)) {
      shared.key() = kEmbedding;
      out.insert(std::move(shared));
    }
  }
  return out;
}

// Its size when all are numbers.
size_t first_not_finite(std::span<const float> values) {
  constexpr size_t kBlock = 4096;  // looked at without branches
  const auto is_finite = [](float x) { return std::abs(x) <= std::numeric_limits<float>::max(); };
  for (size_t begin = 0; begin < values.size(); begin += kBlock) {
    const auto block = values.subspan(begin, std::min(kBlock, values.size() - begin));
    unsigned all = 1;
    for (const float x : block) all &= static_cast<unsigned>(is_finite(x));
    if (!all)
      return begin +
             static_cast<size_t>(std::ranges::find_if_not(block, is_finite) - block.begin());
  }
  return values.size();
}

// The one that this tensor is read from.
const StoredTensor& find_stored(const StoredTensors& stored, const std::string& where,
                                const NamedTensor<float>& tensor) {
  const auto it = stored.find(tensor.name);
  if (it == stored.end())
    fail_f("{} has no tensor \"{}\"; it belongs to another model", where, tensor.name);
  if (it->second.shape != tensor.shape) {
    fail_f("{}: tensor \"{}\" has shape {}, but the model needs {}", it->second.file,
           it->second.name, shape_text(it->second.shape), shape_text(tensor.shape));
  }
  return it->second;
}

void load_tensor(const StoredTensor& stored, const NamedTensor<float>& tensor) {
  tensor.each_part([&](int64_t first, std::span<float> values) {
    read_floats(stored, first, values);
    if (const auto at = first_not_finite(values); at < values.size())
      fail_f(
          "{}: tensor \"{}\" has {} at place {}, which is no number to compute with; use another "
          "file",
          stored.file, stored.name, values[at], first + int64_t(at));
  });
}

// Every tensor of the list, and an Error for any the list does not have.
void load_tensors(const StoredTensors& stored, const std::string& where,
                  std::span<const NamedTensor<float>> tensors) {
  std::vector<std::string_view> names;
  for (const NamedTensor<float>& tensor : tensors) names.push_back(tensor.name);
  std::ranges::sort(names);
  for (const auto& [name, tensor] : stored) {
    if (!std::ranges::binary_search(names, std::string_view(name)) && !is_superfluous(name))
      fail_f("{}: tensor \"{}\" has no place in the model", tensor.file, name);
  }
  std::vector<const StoredTensor*> sources;
  for (const NamedTensor<float>& tensor : tensors)
    sources.push_back(&find_stored(stored, where, tensor));
  constexpr size_t kAhead = 64 << 20;  // bytes on their way from the disk
  size_t ahead = 0, coming = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    for (; ahead < sources.size() && (ahead <= i || coming < kAhead); ++ahead) {
      fetch_ahead(sources[ahead]->bytes);
      coming += sources[ahead]->bytes.size();
    }
    load_tensor(*sources[i], tensors[i]);
    coming -= sources[i]->bytes.size();
  }
}

Json model_json(const ModelFiles& model) {
  Json json = config_to_json(model.config);
  json["torch_dtype"] = "float32";
  if (model.tokenizer == nullptr) return json;
  if (const auto bos = model.tokenizer->named_bos()) json["bos_token_id"] = *bos;
  const std::vector<int>& ends = model.tokenizer->ends();
  if (ends.size() == 1)
    json["eos_token_id"] = ends[0];
  else if (!ends.empty())
    json["eos_token_id"] = ends;
  return json;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    fail_f("cannot make the folder {}: {}; choose another place", folder.string(), error.message());
}

std::string step_name(int64_t step) { return fmt::format("step-{:06}", step); }

// The step of a checkpoint's folder name; nothing for other names.
std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = -1;
  const std::string_view digits = std::string_view(name).substr(std::min<size_t>(name.size(), 5));
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || step < 0 || step_name(step) != name) return std::nullopt;
  return step;
}

}  // namespace

void save_model(const fs::path& folder, const ModelFiles& model) {
  make_folder(folder);
  write_model_tensors(folder, model.weights, DType::f32);
  write_json(folder / kConfigFile, model_json(model));
  if (model.tokenizer == nullptr) return;
  for (const auto& [name, text] : model.tokenizer->files()) write_text(folder / name, text);
}

ModelConfig load_config(const fs::path& folder) {
  const fs::path path = folder / kConfigFile;
  if (!fs::exists(path) && fs::exists(folder / kLatest / kConfigFile))
    fail_f("{} holds the checkpoints of a run: one of them is a model, such as {}", folder.string(),
           (folder / kLatest).string());
  return config_from_json(read_json(path), path.string());
}

void load_weights(const fs::path& folder, std::span<const NamedTensor<float>> weights) {
  const ModelTensors stored(folder);
  load_tensors(under_own_names(stored.tensors(), weights), stored.where(), weights);
}

void CheckpointFolder::prepare() const {
  make_folder(root_);
  if (::access(root_.c_str(), W_OK | X_OK) != 0)
    fail_f("cannot write to the folder {}: {}; check its permissions or choose another place",
           root_.string(), std::strerror(errno));
}

FileLock CheckpointFolder::lock() const {
  const fs::path path = root_ / kLock;
  if (auto lock = FileLock::take(path, "check its permissions or choose another place"))
    return std::move(*lock);
  fail_f("{} is where {} saves its checkpoints: wait for its end, or choose another --out",
         root_.string(), FileLock::holder(path));
}

fs::path CheckpointFolder::save(int64_t step, const ModelFiles& model,
                                const TrainingFiles& training, int keep) const {
  require(step >= 0 && keep >= 1 && training.progress.is_object(),
          "CheckpointFolder::save: step >= 0, keep >= 1 and an object of progress are needed");
  prepare();
  const fs::path place = root_ / step_name(step);
  const fs::path made = place.string() + kUnfinished;
  try {
    remove_leftovers();
    save_model(made, model);
    write_safetensors(made / kOptimizerFile, training.optimizer);
    write_json(made / kTrainingFile, training.progress);
    install(made, place);
    point_latest_to(step_name(step));
    remove_before(step, keep);
  } catch (const fs::filesystem_error& error) {
    fail_f("cannot keep checkpoints in {}: {} ({}); check its permissions or choose another",
           root_.string(), error.code().message(), error.path1().string());
  }
  return place;
}

// The place may hold a checkpoint already, perhaps the latest: then the two change names at once.
void CheckpointFolder::install(const fs::path& made, const fs::path& place) const {
  if (!fs::exists(place)) return rename_durably(made, place);
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, place.c_str(), RENAME_EXCHANGE) != 0) {
    fail_f("cannot replace the checkpoint {}: {}; remove it or choose another folder",
           place.string(), std::strerror(errno));
  }
  sync_folder(root_);
  fs::remove_all(made);
}

void CheckpointFolder::point_latest_to(const std::string& name) const {
  const fs::path link = root_ / (std::string(kLatest) + kUnfinished);
  fs::remove(link);
  std::error_code error;
  fs::create_symlink(name, link, error);
  if (error)
    fail_f("cannot make the link {}: {}; choose another folder", link.string(), error.message());
  rename_durably(link, root_ / kLatest);
}

std::optional<fs::path> CheckpointFolder::latest() const {
  const fs::path link = root_ / kLatest;
  std::error_code error;
  const fs::file_type type = fs::symlink_status(link, error).type();
  if (type == fs::file_type::not_found) return last_step();
  if (type == fs::file_type::none)
    fail_f("cannot look at {}: {}; check its permissions", link.string(), error.message());
  if (type != fs::file_type::symlink) {
    fail_f("{} is no link, but cria keeps one there to the latest checkpoint: remove or rename it",
           link.string());
  }
  const std::string name = fs::read_symlink(link, error).string();
  if (!step_of(name) || !fs::is_directory(root_ / name, error)) {
    fail_f("{} points to \"{}\", which is no checkpoint; point it to one of its folder",
           link.string(), name);
  }
  return root_ / name;
}

// A step's folder has its name only when it is whole, so the last one will do: the first save was
// killed before it made the link, or the run was copied without it.
std::optional<fs::path> CheckpointFolder::last_step() const {
  std::optional<int64_t> last;
  std::error_code error;  // a folder that cannot be read holds nothing
  for (const auto& entry : fs::directory_iterator(root_, error)) {
    const auto step = step_of(entry.path().filename().string());
    if (step && entry.is_directory(error)) last = std::max(last, step);
  }
  return last ? std::optional(root_ / step_name(*last)) : std::nullopt;
}

// First the name goes, so that no half-removed folder looks like a checkpoint.
void CheckpointFolder::remove(const fs::path& checkpoint) const {
  const fs::path going = checkpoint.string() + kUnfinished;
  fs::rename(checkpoint, going);
  fs::remove_all(going);
}

void CheckpointFolder::remove_leftovers() const {
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(root_)) {
    const fs::path& path = entry.path();
    if (path.extension() == kUnfinished && step_of(path.stem().string())) leftovers.push_back(path);
  }
  for (const fs::path& path : leftovers) fs::remove_all(path);
}

void CheckpointFolder::remove_before(int64_t step, int keep) const {
  std::vector<int64_t> steps;
  for (const auto& entry : fs::directory_iterator(root_)) {
    const auto found = step_of(entry.path().filename().string());
    if (found && *found < step) steps.push_back(*found);
  }
  std::ranges::sort(steps, std::ranges::greater());
  for (size_t i = static_cast<size_t>(keep) - 1; i < steps.size(); ++i)
    remove(root_ / step_name(steps[i]));
}

Json load_progress(const fs::path& checkpoint) {
  Json progress = read_json(checkpoint / kTrainingFile);
  if (!progress.is_object())
    fail_f("{} is not a JSON object; resume from another checkpoint",
           (checkpoint / kTrainingFile).string());
  return progress;
}

Json load_training(const fs::path& checkpoint, std::span<const NamedTensor<float>> optimizer) {
  const SafetensorsFile file(checkpoint / kOptimizerFile);
  StoredTensors stored;
  for (const StoredTensor& tensor : file.tensors()) stored.emplace(tensor.name, tensor);
  load_tensors(stored, (checkpoint / kOptimizerFile).string(), optimizer);
  return load_progress(checkpoint);
}

}  // namespace cria
