// Reading: the header is checked field by field, and the tensors must tile the bytes exactly, which
// rules out overlaps, gaps, and offsets beyond the file.
#include "model/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/json.h"

namespace cria {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

constexpr uint64_t kMaxHeader = 100'000'000;

// Bytes of an element; nothing for a type that is not known.
std::optional<uint64_t> element_bytes(std::string_view type) {
  static const std::map<std::string_view, uint64_t> kBytes = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"U64", 8}, {"I64", 8}, {"F64", 8},     {"C64", 8}};
  const auto it = kBytes.find(type);
  return it == kBytes.end() ? std::nullopt : std::optional(it->second);
}

// The list of whole numbers >= 0 under this key of a tensor's entry.
std::vector<uint64_t> numbers(const JsonMap& entry, const char* key, const std::string& where) {
  const auto it = entry.find(key);
  if (it == entry.end() || !it->is_array())
    fail_f("{} has no list \"{}\"; download or write the file again", where, key);
  std::vector<uint64_t> out;
  for (const JsonMap& value : *it) {
    // Bounded so that they are valid as signed numbers too.
    if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX)
      fail_f("{}: \"{}\" must hold whole numbers from 0 to 2^63-1", where, key);
    out.push_back(value.get<uint64_t>());
  }
  return out;
}

// The bytes a tensor of this shape has; an Error when that overflows.
uint64_t byte_count(std::span<const uint64_t> shape, uint64_t element, const std::string& where) {
  uint64_t bytes = element;
  for (const uint64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      fail_f("{} has a shape beyond any memory; download or write the file again", where);
  }
  return bytes;
}

StoredTensor parse_tensor(const std::string& name, const JsonMap& entry,
                          std::span<const std::byte> data, const std::string& file) {
  const std::string where = fmt::format("{}: tensor \"{}\"", file, name);
  if (!entry.is_object()) fail_f("{} is not described by an object", where);
  const auto type = entry.find("dtype");
  if (type == entry.end() || !type->is_string()) fail_f("{} has no \"dtype\"", where);
  const auto& type_name = type->get_ref<const std::string&>();
  const std::optional<uint64_t> element = element_bytes(type_name);
  if (!element)
    fail_f("{} has the unknown type \"{}\"; convert it to F32 or BF16", where, type_name);

  const std::vector<uint64_t> shape = numbers(entry, "shape", where);
  const std::vector<uint64_t> range = numbers(entry, "data_offsets", where);
  if (range.size() != 2) fail_f("{}: \"data_offsets\" must be two numbers", where);
  if (range[0] > range[1] || range[1] > data.size()) {
    fail_f("{} lies at bytes {} to {} of {}; the file is cut short or damaged", where, range[0],
           range[1], data.size());
  }
  const uint64_t bytes = range[1] - range[0];
  const uint64_t needed = byte_count(shape, *element, where);
  const std::vector<int64_t> extents(shape.begin(), shape.end());
  if (bytes != needed) {
    fail_f("{} has {} bytes, but {} of {} needs {}", where, bytes, type_name, shape_text(extents),
           needed);
  }
  return {name, type_name, extents, data.subspan(range[0], bytes), file};
}

// Tensors in the order of their bytes; an Error unless they tile the data without gap or overlap.
void check_tiling(std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                  const std::string& file) {
  std::ranges::stable_sort(tensors, [](const StoredTensor& a, const StoredTensor& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  const std::byte* end = data.data();
  for (const StoredTensor& tensor : tensors) {
    if (tensor.bytes.data() != end) {
      fail_f("{}: tensor \"{}\" {} the one before it; download or write the file again", file,
             tensor.name, tensor.bytes.data() < end ? "overlaps" : "leaves a gap after");
    }
    end += tensor.bytes.size();
  }
  if (const size_t rest = data.size() - static_cast<size_t>(end - data.data()); rest > 0)
    fail_f("{} has {} bytes that belong to no tensor; download or write it again", file, rest);
}

template <class T>
void convert(std::span<const std::byte> bytes, std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = to_float(x);
  }
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void read_floats(const StoredTensor& tensor, int64_t first, std::span<float> out) {
  const uint64_t element = element_bytes(tensor.type).value_or(1), begin = first * element;
  require(begin + out.size() * element <= tensor.bytes.size(),
          "read_floats: the output is larger than the tensor");
  const std::span<const std::byte> bytes = tensor.bytes.subspan(begin);
  if (tensor.type == "F32") {
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size_bytes());
  } else if (tensor.type == "BF16") {
    convert<bf16>(bytes, out);
  } else if (tensor.type == "F16") {
    convert<f16>(bytes, out);
  } else {
    fail_f("{}: tensor \"{}\" is {}; cria reads F32, BF16 and F16: convert it", tensor.file,
           tensor.name, tensor.type);
  }
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::string name = path.string();
  const std::span<const std::byte> bytes = file_.bytes();
  refuse_lfs_pointer(file_.text(), name);
  uint64_t header_size = 0;
  if (bytes.size() < sizeof header_size)
    fail_f("{} has {} bytes and no header; it is no safetensors file, or cut short", name,
           bytes.size());
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const std::span<const std::byte> rest = bytes.subspan(sizeof header_size);
  if (header_size > rest.size() || header_size > kMaxHeader) {
    fail_f(
        "{} claims a header of {} bytes in a file of {}; it is no safetensors file, or cut short",
        name, header_size, bytes.size());
  }
  const std::span<const std::byte> data = rest.subspan(header_size);
  const JsonMap header = parse_json_map({reinterpret_cast<const char*>(rest.data()), header_size},
                                        "the header of " + name);
  if (!header.is_object()) fail_f("the header of {} is not a JSON object", name);

  for (const auto& [key, value] : header.items()) {
    if (key != "__metadata__") {
      tensors_.push_back(parse_tensor(key, value, data, name));
      continue;
    }
    if (!value.is_object()) fail_f("{}: \"__metadata__\" is not an object", name);
    for (const auto& [k, v] : value.items()) {
      if (!v.is_string()) fail_f("{}: the metadata \"{}\" is not a string", name, k);
      metadata_.emplace(k, v.get<std::string>());
    }
  }
  check_tiling(tensors_, data, name);
}

}  // namespace cria
