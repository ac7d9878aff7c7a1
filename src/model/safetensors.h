// Hugging Face's safetensors: a JSON header with each tensor's type, shape and place, then the
// bytes. Files come from elsewhere, so nothing in a header is believed before it is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "base/mapped_file.h"
#include "base/runs.h"

namespace cria {

// A tensor under the name and shape it has in a file, and the floats that are written there or read
// from there, part by part: no more than a part need be in host memory.
template <class T>
struct NamedTensor {
  // Takes, or fills in, the elements from the `first` of the file's tensor on.
  using Part = std::function<void(int64_t first, std::span<T> values)>;

  std::string name;
  std::vector<int64_t> shape;
  std::function<void(const Part&)> each_part;  // calls it for all elements, in the file's order

  NamedTensor(std::string name, std::vector<int64_t> shape,
              std::function<void(const Part&)> each_part)
      : name(std::move(name)), shape(std::move(shape)), each_part(std::move(each_part)) {}

  // Of floats in host memory: one after the other, or where `runs` says.
  NamedTensor(std::string name, std::vector<int64_t> shape, T* data, Runs runs = {})
      : name(std::move(name)), shape(std::move(shape)) {
    if (runs.size() == 0) runs = {.inner = static_cast<int64_t>(size())};
    each_part = [data, runs](const Part& part) {
      runs.each([&](int64_t place, int64_t first, int64_t count) {
        part(first, std::span<T>(data + place, static_cast<size_t>(count)));
      });
    };
  }

  size_t size() const {
    size_t n = 1;
    for (const int64_t extent : shape) n *= static_cast<size_t>(extent);
    return n;
  }
};

// A tensor in a mapped file.
struct StoredTensor {
  std::string name;
  std::string type;  // as the file spells it: F32, BF16, F16, I64, ...
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // of no particular alignment
  std::string file;                  // for messages
};

std::string shape_text(std::span<const int64_t> shape);  // "[2, 3]"

// Fills out with the elements from `first` on, which are F32, BF16 or F16; an Error for other types.
void read_floats(const StoredTensor& tensor, int64_t first, std::span<float> out);

class SafetensorsFile {
 public:
  // Checks the whole header: an Error names the file and, where it is one's fault, the tensor.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<StoredTensor>& tensors() const {
    return tensors_;
  }  // in the order of the bytes
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// All tensors of `folder`: of model.safetensors, else of the shards that
// model.safetensors.index.json lists.
class ModelTensors {
 public:
  explicit ModelTensors(const std::filesystem::path& folder);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::string& where() const { return where_; }  // the file that lists them, for messages

 private:
  void open_shards(const std::filesystem::path& index);

  std::vector<SafetensorsFile> files_;
  std::map<std::string, StoredTensor> tensors_;
  std::string where_;
};

// Writes floats as `type` (f32, bf16 or f16). The file appears whole or not at all.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const NamedTensor<const float>> tensors, DType type = DType::f32);

inline constexpr int64_t kShardBytes = 5'000'000'000;  // as transformers cuts

// model.safetensors, or, when that would pass shard_bytes, numbered shards and their index.
void write_model_tensors(const std::filesystem::path& folder,
                         std::span<const NamedTensor<const float>> tensors, DType type = DType::f32,
                         int64_t shard_bytes = kShardBytes);

}  // namespace cria
