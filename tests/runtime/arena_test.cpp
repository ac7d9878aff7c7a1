#include "runtime/arena.h"

#include "on_device.h"

namespace cria {
namespace {

using test::expect_error;

class ArenaTest : public test::OnDevice {};
INSTANTIATE_TEST_SUITE_P(Backends, ArenaTest, test::every_backend(), test::backend_name);

TEST_P(ArenaTest, PlansThenGivesOut) {
  Arena arena(device());
  EXPECT_TRUE(arena.planning());
  EXPECT_EQ(arena.take<float>(100), nullptr);
  EXPECT_EQ(arena.take<double>(3), nullptr);
  EXPECT_EQ(arena.used_bytes(), 512u + 24u);  // 400 bytes, up to the next multiple of 256, 24 bytes

  arena.commit();
  EXPECT_FALSE(arena.planning());
  EXPECT_EQ(arena.used_bytes(), 0u);
  EXPECT_EQ(arena.capacity_bytes(), 536u);
  auto* floats = reinterpret_cast<std::byte*>(arena.take<float>(100));
  auto* doubles = reinterpret_cast<std::byte*>(arena.take<double>(3));
  ASSERT_NE(floats, nullptr);
  EXPECT_EQ(doubles - floats, 512);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(floats) % Arena::kAlignment, 0u);
  expect_error([&] { arena.commit(); }, "twice");
}

TEST_P(ArenaTest, SaysWhenItIsFull) {
  Arena arena(device(), 1024);
  arena.take_bytes(700);
  expect_error([&] { arena.take_bytes(300); }, "300 bytes asked for, 700 of 1024 bytes in use");
  EXPECT_EQ(arena.used_bytes(), 700u);
  EXPECT_NE(arena.take_bytes(256), nullptr);
  expect_error([&] { arena.take_bytes(1); }, "full");
  expect_error([&] { arena.take_bytes(SIZE_MAX); }, "no memory is that large");
  expect_error([&] { arena.take<float>(-1); }, "-1 elements");
  expect_error([&] { arena.take<float>(INT64_MAX); }, "elements of 4 bytes");
}

TEST_P(ArenaTest, MayBeEmpty) {
  Arena arena(device());
  arena.take_bytes(0);
  arena.commit();
  EXPECT_EQ(arena.take_bytes(0), nullptr);
  expect_error([&] { arena.take_bytes(1); }, "full");
}

}  // namespace
}  // namespace cria
