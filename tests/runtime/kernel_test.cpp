#include "runtime/kernel.h"

#include <gtest/gtest.h>

#include "runtime/on_device.h"

namespace cria::test {
namespace {

KernelConfig config(std::string name, bool fits = true) {
  return {std::move(name),
          fits ? [](const void*, int) { return true; } : [](const void*, int) { return false; },
          [](const void*, int) { return true; }, [](void*, const void*) {},
          [] { return KernelResources{}; }};
}

void fill(KernelRegistry& registry) {
  registry.add({"scale", DType::f32, Target::cpu, {config("wide", false), config("narrow")}});
  registry.add({"scale", DType::bf16, Target::cpu, {config("wide")}});
  registry.add({"scale", DType::f32, Target::trace, {config("wide")}});
}

TEST(KernelRegistry, FindsByNameTypeAndTarget) {
  const KernelRegistry registry(fill);
  EXPECT_EQ(registry.all().size(), 3u);
  EXPECT_EQ(registry.get("scale", DType::f32, Target::cpu).configs.size(), 2u);
  EXPECT_EQ(registry.find("scale", DType::f32, Target::cuda), nullptr);
  EXPECT_EQ(registry.find("shift", DType::f32, Target::cpu), nullptr);
}

TEST(KernelRegistry, SaysWhatThereIsInstead) {
  const KernelRegistry registry(fill);
  expect_error([&] { registry.get("scale", DType::f16, Target::cpu); },
               "kernel scale is not built for f16 on cpu; it is for f32, bf16");
  expect_error([&] { registry.get("scale", DType::f32, Target::cpu).config("tall"); },
               "scale has no configuration 'tall'; it has wide, narrow");
}

TEST(KernelRegistry, SaysHowToBuildWhatTheTourLeavesOut) {
  KernelRegistry registry(fill);
  registry.mark_partial();
  expect_error([&] { registry.get("scale", DType::f16, Target::cpu); },
               "`make build` builds the rest");
  expect_error([&] { registry.get("nothing", DType::f32, Target::cpu); },
               "`make build` builds the rest");
}

TEST(KernelRegistry, NamesAreUnique) {
  KernelRegistry registry(fill);
  expect_error(
      [&] {
        registry.add({"scale", DType::f32, Target::cpu, {config("wide")}});
      },
      "two kernels are called scale (f32, cpu)");
  expect_error(
      [&] {
        registry.add({"shift", DType::f32, Target::cpu, {config("a"), config("a")}});
      },
      "shift has two configurations called a");
}

TEST(KernelRegistry, KeepsThoseThatFitInOrder) {
  const KernelRegistry registry(fill);
  const auto fitting = registry.get("scale", DType::f32, Target::cpu).fitting(nullptr, 0);
  ASSERT_EQ(fitting.size(), 1u);
  EXPECT_EQ(fitting[0]->name, "narrow");
}

// Registering fails for kernels or configurations of one name.
TEST(KernelRegistry, OwnKernelsHaveNamesOfTheirOwn) {
  EXPECT_FALSE(kernel_registry().all().empty());
}

}  // namespace
}  // namespace cria::test
