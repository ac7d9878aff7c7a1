#include "model/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/json.h"
#include "support/files.h"

namespace cria {
namespace {

using test::expect_error;
using test::TemporaryFolder;

using Floats = std::vector<NamedTensor<const float>>;

std::vector<float> ramp(size_t n) {
  std::vector<float> out(n);
  std::iota(out.begin(), out.end(), -3.f);
  return out;
}

// A file of this header and so many bytes of data.
std::string make_file(const std::string& header, size_t data) {
  const uint64_t size = header.size();
  std::string out(sizeof size, '\0');
  std::memcpy(out.data(), &size, sizeof size);
  return out + header + std::string(data, '\1');
}

std::string one_tensor(const std::string& fields) { return "{\"w\":{" + fields + "}}"; }

class Safetensors : public ::testing::Test {
 protected:
  // An Error with these parts, which always names the file, from a file of these bytes.
  void expect_refused(const std::string& bytes, std::initializer_list<std::string> parts) {
    write_text(folder_ / "bad.safetensors", bytes);
    expect_error([&] { SafetensorsFile file(folder_ / "bad.safetensors"); }, {"bad.safetensors"});
    expect_error([&] { SafetensorsFile file(folder_ / "bad.safetensors"); }, parts);
  }

  TemporaryFolder folder_;
};

TEST_F(Safetensors, RoundTripInEveryType) {
  const std::vector<float> a = ramp(6), b = ramp(100000);
  const std::vector<const float*> values = {a.data(), b.data(), a.data()};
  const Floats floats = {
      {"a", {2, 3}, values[0]}, {"b \"\n", {100000}, values[1]}, {"none", {0}, values[2]}};
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    write_safetensors(folder_ / "x", floats, type);
    const SafetensorsFile file(folder_ / "x");
    ASSERT_EQ(file.tensors().size(), 3u);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    for (size_t t = 0; t < 3; ++t) {
      const StoredTensor& tensor = file.tensors()[t];
      const NamedTensor<const float>& want = floats[t];
      EXPECT_EQ(tensor.name, want.name);
      EXPECT_EQ(tensor.shape, want.shape);
      std::vector<float> got(want.size());
      read_floats(tensor, 0, got);
      for (size_t i = 0; i < got.size(); ++i) {
        const float rounded = with_dtype(
            type, [&](auto z) { return to_float(from_float<decltype(z)>(values[t][i])); });
        ASSERT_EQ(got[i], rounded) << tensor.name << " " << i;
      }
    }
    // Data starts at a multiple of 8, for readers that map it.
    EXPECT_EQ(reinterpret_cast<uintptr_t>(file.tensors()[0].bytes.data()) % 8, 0u);
  }
  expect_error([&] { write_safetensors(folder_ / "y", floats, DType::i32); }, {"i32"});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "y"));
}

TEST_F(Safetensors, ScalarsAndUnalignedDataAreRead) {
  write_text(folder_ / "x",
             make_file(R"( {"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4));
  const SafetensorsFile file(folder_ / "x");
  float value = 0;
  read_floats(file.tensors().at(0), 0, {&value, 1});
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  EXPECT_EQ(bits, 0x01010101u);
}

TEST_F(Safetensors, EmptyHeaderIsAFileWithoutTensors) {
  write_text(folder_ / "x", make_file("{}", 0));
  EXPECT_TRUE(SafetensorsFile(folder_ / "x").tensors().empty());
}

TEST_F(Safetensors, OtherTypesAreRefusedWhenUsed) {
  write_text(folder_ / "x",
             make_file(one_tensor(R"("dtype":"I64","shape":[1],"data_offsets":[0,8])"), 8));
  const SafetensorsFile file(folder_ / "x");
  std::vector<float> out(1);
  expect_error([&] { read_floats(file.tensors()[0], 0, out); }, {"/x", "\"w\"", "I64", "convert"});
}

TEST_F(Safetensors, RefusesDamagedFiles) {
  expect_refused("", {"no header"});
  expect_refused("\1\0\0", {"cut short"});
  expect_refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10), {"18446744073709551615"});
  expect_refused(std::string("\x03\0\0\0\0\0\0\0{}", 10), {"header of 3 bytes"});
  expect_refused(make_file("{", 0), {"not valid JSON"});
  expect_refused(make_file("\xff\xfe", 0), {"not valid JSON"});
  expect_refused(make_file("[]", 0), {"not a JSON object"});
  expect_refused(make_file("7", 0), {"not a JSON object"});
  expect_refused(make_file(std::string(100000, '['), 0), {"nested deeper"});
  expect_refused(make_file(R"({"__metadata__":3})", 0), {"__metadata__"});
  expect_refused(make_file(R"({"__metadata__":{"a":3}})", 0), {"metadata \"a\""});
  expect_refused(make_file("{}", 5), {"5 bytes that belong to no tensor"});
}

TEST_F(Safetensors, RefusesHostileTensors) {
  const auto refused = [&](const std::string& fields, std::initializer_list<std::string> parts) {
    expect_refused(make_file(one_tensor(fields), 16), {"tensor \"w\""});
    expect_refused(make_file(one_tensor(fields), 16), parts);
  };
  expect_refused(make_file(R"({"w":3})", 16), {"\"w\"", "not described"});
  refused(R"("shape":[4],"data_offsets":[0,16])", {"no \"dtype\""});
  refused(R"("dtype":3,"shape":[4],"data_offsets":[0,16])", {"no \"dtype\""});
  refused(R"("dtype":"F31","shape":[4],"data_offsets":[0,16])", {"unknown type \"F31\""});
  refused(R"("dtype":"F32","data_offsets":[0,16])", {"no list \"shape\""});
  refused(R"("dtype":"F32","shape":4,"data_offsets":[0,16])", {"no list \"shape\""});
  refused(R"("dtype":"F32","shape":[-4],"data_offsets":[0,16])", {"\"shape\" must hold"});
  refused(R"("dtype":"F32","shape":[4.0],"data_offsets":[0,16])", {"\"shape\" must hold"});
  refused(R"("dtype":"F32","shape":["4"],"data_offsets":[0,16])", {"\"shape\" must hold"});
  refused(R"("dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,16])", {"must hold"});
  refused(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,16])", {"must hold"});
  refused(R"("dtype":"F32","shape":[4])", {"no list \"data_offsets\""});
  refused(R"("dtype":"F32","shape":[4],"data_offsets":[0])", {"two numbers"});
  refused(R"("dtype":"F32","shape":[4],"data_offsets":[0,16,32])", {"two numbers"});
  refused(R"("dtype":"F32","shape":[4],"data_offsets":[-1,15])", {"must hold"});
  refused(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])", {"bytes 16 to 0"});
  refused(R"("dtype":"F32","shape":[5],"data_offsets":[0,20])", {"bytes 0 to 20 of 16"});
  refused(R"("dtype":"F32","shape":[4],"data_offsets":[9223372036854775807,9223372036854775807])",
          {"bytes 9223372036854775807"});
  refused(R"("dtype":"F32","shape":[3],"data_offsets":[0,16])", {"16 bytes", "[3] needs 12"});
  // 2^62 elements of 4 bytes are 0 modulo 2^64.
  refused(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])",
          {"beyond any memory"});
  refused(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", {"beyond any"});
}

TEST_F(Safetensors, RefusesTensorsThatDoNotTile) {
  const auto two = [](const std::string& a, const std::string& b) {
    const std::string rest = R"("dtype":"F32","shape":[2],"data_offsets":)";
    return make_file("{\"a\":{" + rest + a + "},\"b\":{" + rest + b + "}}", 16);
  };
  write_text(folder_ / "x", two("[8,16]", "[0,8]"));
  EXPECT_EQ(SafetensorsFile(folder_ / "x").tensors()[0].name, "b");
  expect_refused(two("[0,8]", "[0,8]"), {"\"b\"", "overlaps"});
  expect_refused(two("[0,8]", "[4,12]"), {"\"b\"", "overlaps"});
  expect_refused(make_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
      "b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                           16),
                 {"\"b\"", "gap"});
  expect_refused(make_file(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
      "a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",
                           16),
                 {"\"a\" twice"});
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  const std::vector<float> a = ramp(6);
  write_safetensors(folder_ / "x", Floats{{"a", {2, 3}, a.data()}});
  const std::string whole = read_text(folder_ / "x");
  for (size_t n = 0; n < whole.size(); ++n) {
    write_text(folder_ / "cut", whole.substr(0, n));
    ASSERT_THROW(SafetensorsFile(folder_ / "cut"), Error) << n;
  }
}

TEST_F(Safetensors, ShardsRoundTrip) {
  const std::vector<float> a = ramp(50);
  Floats floats;
  for (int i = 0; i < 7; ++i) floats.push_back({"t" + std::to_string(i), {10}, a.data() + i});
  floats.push_back({"large", {50}, a.data()});
  write_model_tensors(folder_.path(), floats, DType::f32, 100);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "model-00005-of-00005.safetensors"));
  EXPECT_EQ(read_json(folder_ / "model.safetensors.index.json")["metadata"]["total_size"], 480);
  const ModelTensors model(folder_.path());
  ASSERT_EQ(model.tensors().size(), 8u);
  for (const auto& want : floats) {
    std::vector<float> got(want.size());
    read_floats(model.tensors().at(want.name), 0, got);
    want.each_part([&](int64_t first, std::span<const float> values) {
      EXPECT_EQ(first, 0);
      EXPECT_TRUE(std::ranges::equal(got, values)) << want.name;
    });
  }
}

TEST_F(Safetensors, AnOlderModelIsReplacedWhole) {
  const std::vector<float> a = ramp(10), b(10, 2.5f);
  const auto written = [&](const std::vector<float>& values, int64_t shard_bytes) {
    const float* data = values.data();
    write_model_tensors(folder_.path(), Floats{{"a", {5}, data}, {"b", {5}, data + 5}}, DType::f32,
                        shard_bytes);
    const ModelTensors model(folder_.path());
    std::vector<float> got(5);
    read_floats(model.tensors().at("a"), 0, got);
    return std::equal(got.begin(), got.end(), data);
  };
  for (const int64_t shard_bytes : {100, 20, 100, 20})
    EXPECT_TRUE(written(shard_bytes == 20 ? b : a, shard_bytes));
}

TEST_F(Safetensors, DamagedShardsAreNamed) {
  const std::vector<float> a = ramp(10);
  const Floats floats = {{"a", {10}, a.data()}, {"b", {10}, a.data()}};
  write_model_tensors(folder_.path(), floats, DType::f32, 40);
  const auto index = folder_ / "model.safetensors.index.json";
  const auto refused = [&](const Json& json, std::initializer_list<std::string> parts) {
    write_json(index, json);
    expect_error([&] { ModelTensors model(folder_.path()); }, parts);
  };
  const Json good = read_json(index);
  Json json = good;
  json["weight_map"]["c"] = "model-00001-of-00002.safetensors";
  refused(json, {"index.json", "\"c\"", "does not have it"});
  json = good;
  json["weight_map"].erase("a");
  json["weight_map"]["x"] = "model-00001-of-00002.safetensors";
  refused(json, {"model-00001", "\"a\"", "does not place"});
  for (const char* path : {"../a.safetensors", "/etc/passwd", "..", ""})
    refused({{"weight_map", {{"a", path}}}}, {"index.json", "\"a\"", "this folder"});
  refused({{"weight_map", {{"a", "none.safetensors"}}}}, {"none.safetensors", "No such file"});
  refused({{"weight_map", 3}}, {"index.json", "weight_map"});
  refused(Json::array(), {"index.json", "weight_map"});
  expect_error([&] { ModelTensors model(folder_ / "none"); }, {"none/model.safetensors"});
}

}  // namespace
}  // namespace cria
