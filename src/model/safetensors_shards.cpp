// A model's tensors over one file or several: model.safetensors, or shards and their index.
#include <algorithm>
#include <set>
#include <system_error>

#include "base/format.h"
#include "base/json.h"
#include "model/safetensors.h"

namespace cria {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// Tensor name -> the file it is in.
std::map<std::string, std::string> read_index(const fs::path& path) {
  const std::string where = path.string();
  const MappedFile file(path);
  const JsonMap json = parse_json_map(file.text(), where);
  const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
  if (weight_map == json.end() || !weight_map->is_object())
    fail_f("{} has no object \"weight_map\"; download it again", where);
  std::map<std::string, std::string> out;
  for (const auto& [tensor, shard] : weight_map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    // A name, not a path: an index must not reach out of its folder.
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
      fail_f("{}: tensor \"{}\" is not in a file of this folder", where, tensor);
    out.emplace(tensor, name);
  }
  return out;
}

}  // namespace

ModelTensors::ModelTensors(const fs::path& folder) {
  std::error_code ignored;  // what cannot be looked at cannot be opened either
  if (fs::exists(folder / kIndexFile, ignored) && !fs::exists(folder / kModelFile, ignored)) {
    open_shards(folder / kIndexFile);
    return;
  }
  where_ = (folder / kModelFile).string();
  files_.emplace_back(folder / kModelFile);
  for (const StoredTensor& tensor : files_.back().tensors()) tensors_.emplace(tensor.name, tensor);
}

void ModelTensors::open_shards(const fs::path& index) {
  where_ = index.string();
  const std::map<std::string, std::string> shard_of = read_index(index);
  std::set<std::string> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  for (const std::string& shard : shards) {
    files_.emplace_back(index.parent_path() / shard);
    for (const StoredTensor& tensor : files_.back().tensors()) {
      const auto it = shard_of.find(tensor.name);
      if (it == shard_of.end() || it->second != shard)
        fail_f("{} has the tensor \"{}\", which {} does not place there", tensor.file, tensor.name,
               where_);
      tensors_.emplace(tensor.name, tensor);
    }
  }
  for (const auto& [tensor, shard] : shard_of) {
    if (!tensors_.contains(tensor))
      fail_f("{} places tensor \"{}\" in {}, which does not have it", where_, tensor, shard);
  }
}

void write_model_tensors(const fs::path& folder, std::span<const NamedTensor<const float>> tensors,
                         DType type, int64_t shard_bytes) {
  // Cut the list where the next tensor would pass the limit; a larger one is alone in its shard.
  std::vector<size_t> ends;
  int64_t total = 0, in_shard = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto bytes = static_cast<int64_t>(tensors[i].size() * size_of(type));
    if (in_shard > 0 && in_shard + bytes > shard_bytes) {
      ends.push_back(i);
      in_shard = 0;
    }
    in_shard += bytes;
    total += bytes;
  }
  ends.push_back(tensors.size());
  std::error_code ignored;  // when there is nothing to remove
  if (ends.size() == 1) {
    write_safetensors(folder / kModelFile, tensors, type);
    fs::remove(folder / kIndexFile, ignored);  // of an older model, as is the file below
    return;
  }

  Json weight_map = Json::object();
  size_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, ends.size());
    const auto shard = tensors.subspan(begin, ends[i] - begin);
    write_safetensors(folder / name, shard, type);
    for (const auto& tensor : shard) weight_map.push_back({tensor.name, name});
    begin = ends[i];
  }
  write_json(folder / kIndexFile,
             {{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}});
  fs::remove(folder / kModelFile, ignored);
}

}  // namespace cria
