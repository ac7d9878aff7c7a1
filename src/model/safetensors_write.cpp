// Writing: the header is known before the first byte of data, so tensors stream straight through.
#include <algorithm>

#include "base/durable_file.h"
#include "base/format.h"
#include "base/json.h"
#include "model/safetensors.h"

namespace cria {
namespace {

const char* stored_name(DType type) {
  switch (type) {
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    case DType::i32:
      break;
  }
  fail_f("weights are not stored as {}; choose f32, bf16 or f16", name_of(type));
}

std::string make_header(std::span<const NamedTensor<const float>> tensors, DType type) {
  // Appended to the text, because looking keys up in an ordered object takes time per key.
  std::string header = R"({"__metadata__":{"format":"pt"})";  // transformers asks for it
  size_t offset = 0;
  for (const auto& tensor : tensors) {
    const size_t end = offset + tensor.size() * size_of(type);
    const Json entry = {
        {"dtype", stored_name(type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    header += fmt::format(",{}:{}", Json(tensor.name).dump(), entry.dump());
    offset = end;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of 8
  return header;
}

template <class T>
void write_floats(DurableFile& file, std::span<const float> values) {
  constexpr size_t kChunk = 1 << 16;
  std::vector<T> chunk;
  for (; !values.empty(); values = values.subspan(chunk.size())) {
    chunk.resize(std::min(values.size(), kChunk));
    std::ranges::transform(values.first(chunk.size()), chunk.begin(), from_float<T>);
    file.write({reinterpret_cast<const char*>(chunk.data()), chunk.size() * sizeof(T)});
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path,
                       std::span<const NamedTensor<const float>> tensors, DType type) {
  const std::string header = make_header(tensors, type);
  const uint64_t header_size = header.size();
  DurableFile file(path);
  file.write({reinterpret_cast<const char*>(&header_size), sizeof header_size});
  file.write(header);
  for (const auto& tensor : tensors) {
    size_t written = 0;
    tensor.each_part([&](int64_t first, std::span<const float> values) {
      require(static_cast<size_t>(first) == written, "parts of a tensor do not follow each other");
      written += values.size();
      if (type == DType::f32)
        file.write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
      else if (type == DType::bf16)
        write_floats<bf16>(file, values);
      else
        write_floats<f16>(file, values);
    });
    require(written == tensor.size(), "the parts of a tensor are not all of it");
  }
  file.commit();
}

}  // namespace cria
