// Launches: grids, order of pipeline steps, persistent programs and grid-wide barriers, print.
#define CRIA_TARGET_CPU 1
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/tensor.h"
#include "runtime/thread_pool.h"
#include "tile/host_program.h"

namespace cria::tile {
namespace {

// Each program writes its index to its own place of a 3-D grid.
struct WriteIndex {
  using Element = float;
  struct Args {
    float* out;
    Grid grid;
  };
  static constexpr Traits traits{.threads = 32};
  static Grid grid(const Args& a) { return a.grid; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int x = p.program_id(0), y = p.program_id(1), z = p.program_id(2);
    p.store(a.out + (z * p.num_programs(1) + y) * p.num_programs(0) + x, 100.f * z + 10.f * y + x);
  }
};

TEST(CpuLaunch, GridCountsXFirst) {
  ThreadPool pool(3);
  std::vector<float> out(5 * 4 * 3, -1);
  launch<WriteIndex>(pool, {out.data(), {5, 4, 3}});
  for (int i = 0; i < 60; ++i) EXPECT_EQ(out[i], 100.f * (i / 20) + 10.f * (i / 5 % 4) + i % 5);
}

TEST(CpuLaunch, EmptyGridRunsNothing) {
  ThreadPool pool(2);
  launch<WriteIndex>(pool, {nullptr, {0}});
  launch<WriteIndex>(pool, {nullptr, {5, 0, 3}});
}

TEST(CpuLaunch, ANegativeGridIsRefused) {
  ThreadPool pool(2);
  EXPECT_THROW(launch<WriteIndex>(pool, {nullptr, {-1}}), Error);
  EXPECT_THROW(launch<WriteIndex>(pool, {nullptr, {5, 0, -3}}), Error);
  EXPECT_THROW(launch<WriteIndex>(pool, {nullptr, {5, -4, -3}}), Error);
}

TEST(CpuLaunch, ManyProgramsEachRunOnce) {
  ThreadPool pool(4);
  std::vector<float> out(30011, -1);
  launch<WriteIndex>(pool, {out.data(), {30011}});
  for (int i = 0; i < 30011; ++i) ASSERT_EQ(out[i], i);
}

TEST(CpuLaunch, PipelineFetchesAheadInOrder) {
  test::with_program([](auto& p) {
    for (int n : {0, 1, 2, 3, 7}) {
      std::string log;
      auto note = [&](char what, int j, int stage) {
        log += what + std::to_string(j) + "." + std::to_string(stage) + " ";
      };
      p.pipeline(
          stages<3>, n, [&](int j, int stage) { note('f', j, stage); },
          [&](auto&, auto& steps) {
            steps(n > 0, [&](int j, int stage) { note('a', j, stage); });
            steps([&](int j, int stage) { note('b', j, stage); });
          });
      const char* want[] = {"", "f0.0 a0.0 ", "f0.0 f1.1 a0.0 b1.1 ",
                            "f0.0 f1.1 f2.2 a0.0 b1.1 b2.2 "};
      if (n <= 3) {
        EXPECT_EQ(log, want[n]);
      } else {
        EXPECT_EQ(log, "f0.0 f1.1 f2.2 a0.0 f3.0 b1.1 f4.1 b2.2 f5.2 b3.0 f6.0 b4.1 b5.2 b6.0 ");
      }
    }
  });
}

// On a GPU whoever fetches would wait for who computes, or the other way round.
TEST(CpuLaunch, EveryStepOfAPipelineIsTaken) {
  test::with_program([](auto& p) {
    const auto take = [&](int n, int taken) {
      p.pipeline(
          stages<2>, n, [](int, int) {},
          [&](auto&, auto& steps) { steps(taken, [](int, int) {}); });
    };
    take(3, 3);
    EXPECT_THROW(take(3, 2), Error);
    EXPECT_THROW(take(3, 4), Error);
    EXPECT_THROW(take(1, 2), Error);
  });
}

struct Assisted : test::Bare<float, 256> {
  static constexpr Traits traits{.threads = 256, .lowering = Lowering::kHopper, .assisted = true};
};

TEST(CpuLaunch, WhatIsHandedOverIsDoneOnTheSpotByAProgramOfOneWarpgroup) {
  std::string log;
  std::vector<int> hands;
  int announced = 2;
  auto run = [&](auto& p) {
    p.pipeline(
        stages<2>, 3, [](int, int) {},
        [&](auto& p, auto& steps) {
          steps([&](int j, int) {
            log += "s" + std::to_string(j) + " ";
            hands.push_back(steps.hand());
            if (j != 1) steps.hand_over();
          });
          steps.take_back();
          log += std::to_string(p.threads);
        },
        announced,
        [&](auto& assistant, int i, int hand) {
          EXPECT_EQ(hand, hands.back());
          EXPECT_EQ(assistant.program_id(0), 1);
          EXPECT_EQ(assistant.program_id(1), 2);
          EXPECT_EQ(assistant.program_id(2), 3);
          log += "a" + std::to_string(i) + "." + std::to_string(assistant.threads) + " ";
          assistant.hand_back();
        });
  };
  test::with_program<Assisted>(run, {3, 4, 5}, 1 + 3 * (2 + 4 * 3));
  EXPECT_EQ(std::exchange(log, {}), "s0 a0.128 s1 s2 a1.128 256");
  EXPECT_EQ(std::exchange(hands, {}), (std::vector{0, 1, 1}));
  test::with_program<test::Bare<float, 256>>(run, {3, 4, 5}, 1 + 3 * (2 + 4 * 3));
  EXPECT_EQ(log, "s0 a0.256 s1 s2 a1.256 256");
  EXPECT_EQ(hands, (std::vector{0, 0, 0}));
  announced = 3;  // on a GPU the assistant would wait for ever
  EXPECT_THROW(test::with_program<Assisted>(run, {3, 4, 5}, 1 + 3 * (2 + 4 * 3)), Error);
}

// Phase 1 writes h, phase 2 reads what other programs wrote: y[t] = h[n - 1 - t] + 1.
struct TwoPhases {
  using Element = float;
  struct Args {
    float *h, *y;
    int n;
  };
  static constexpr Traits traits{.threads = 32, .persistent = true, .cooperative = true};
  static Grid grid(const Args& a) { return {a.n}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    for (int round = 0; round < 20; ++round) {
      p.for_tiles(a.n, [&](int t) { p.store(a.h + t, float(t + round)); });
      p.grid_sync();
      p.for_tiles(a.n, [&](int t) { p.store(a.y + t, p.load(a.h + (a.n - 1 - t)) + 1); });
      p.grid_sync();
    }
  }
};

TEST(CpuLaunch, GridBarriersSeparatePhases) {
  for (int workers : {1, 2, 5}) {
    ThreadPool pool(workers);
    for (int n : {0, 1, 3, 1000}) {
      std::vector<float> h(n), y(n);
      launch<TwoPhases>(pool, {h.data(), y.data(), n});
      for (int t = 0; t < n; ++t) ASSERT_EQ(y[t], n - t + 19) << workers << " workers, tile " << t;
    }
  }
}

// The first n programs write, and as many after them read what several of those wrote, once they
// have signalled: y[t] = the sum of all h, by way of one place for every third of the writers.
struct WritersThenReaders {
  using Element = float;
  struct Args {
    float *h, *y;
    int32_t* places;  // [3]
    int n;
  };
  static constexpr Traits traits{.threads = 32};
  static Grid grid(const Args& a) { return {2 * a.n}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    const int id = p.program_id(0);
    if (id < a.n) {
      p.store(a.h + id, float(id));
      p.signal(a.places + id % 3);
      return;
    }
    for (int place = 0; place < 3; ++place) p.await(a.places + place, (a.n + 2 - place) / 3, a.n);
    float sum = 0;
    for (int i = 0; i < a.n; ++i) sum += p.load(a.h + i);
    p.store(a.y + (id - a.n), sum);
  }
};

TEST(CpuLaunch, ReadersAwaitTheirWriters) {
  for (int workers : {1, 2, 5}) {
    ThreadPool pool(workers);
    int32_t places[3] = {};
    for (int n : {0, 1, 3, 200, 200}) {  // the places are as good as new each time
      std::vector<float> h(n), y(n);
      launch<WritersThenReaders>(pool, {h.data(), y.data(), places, n});
      for (int t = 0; t < n; ++t)
        ASSERT_EQ(y[t], n * (n - 1) / 2) << workers << " workers, reader " << t;
      for (const int32_t place : places) EXPECT_EQ(place, 0) << workers << " workers, n " << n;
    }
  }
}

// A program that fails keeps nobody waiting for its signal.
struct FailsBeforeItSignals {
  using Element = float;
  struct Args {
    int32_t* place;
  };
  static constexpr Traits traits{.threads = 32};
  static Grid grid(const Args&) { return {100}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a) {
    if (p.program_id(0) == 0) fail("the first program has failed");
    p.await(a.place, 1, 99);
  }
};

TEST(CpuLaunch, NobodyAwaitsAProgramThatHasFailed) {
  for (int workers : {1, 2, 5}) {
    ThreadPool pool(workers);
    int32_t place = 0;
    try {
      launch<FailsBeforeItSignals>(pool, {&place});
      ADD_FAILURE() << workers << " workers: no exception";
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "the first program has failed");
    }
  }
}

// Shared tiles and spare room come from the worker's scratch, each program its own.
struct UsesShared {
  using Element = float;
  struct Args {
    Tensor<const float> x;
    Tensor<float> y;
  };
  struct Shared {
    SharedTile<float, 16, 32, 2> tiles;
  };
  static constexpr Traits traits{.threads = 32};
  static Grid grid(const Args& a) { return {a.x.batch}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    const int b = p.program_id(0);
    p.fetch(s.tiles[0], a.x, b, 0, 0);
    p.fetch_wait();
    p.write(s.tiles[1], p.read(s.tiles[0]) * 2.f);
    p.sync();
    p.store(a.y, p.read(s.tiles[1]), 0, 0, b);
  }
};

TEST(CpuLaunch, SharedTilesAreEachProgramsOwn) {
  ThreadPool pool(3);
  const std::vector<float> x = test::random_values(500 * 16 * 32, 1);
  std::vector<float> y(x.size());
  launch<UsesShared>(pool, {batch_of(x.data(), 500, 16, 32), batch_of(y.data(), 500, 16, 32)});
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], x[i] * 2);
}

struct UsesEmpty : UsesShared {
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    p.store(a.y, p.read(s.tiles[1]), 0, 0, 0);
  }
};

TEST(CpuLaunch, AnUnfilledSharedTileIsAnError) {
  ThreadPool pool(2);
  std::vector<float> x(16 * 32);
  EXPECT_THROW(launch<UsesEmpty>(pool, {batch_of<const float>(x.data(), 1, 16, 32),
                                        batch_of(x.data(), 1, 16, 32)}),
               Error);
}

TEST(CpuLaunch, PrintLeavesOutTheMiddle) {
  testing::internal::CaptureStdout();
  test::with_program([](auto& p) {
    std::vector<float> x(128);
    for (int i = 0; i < 128; ++i) x[i] = i;
    p.print("x", p.load(x.data(), p.arange(shape<128>)) * 2.f);
  });
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("program (0,0,0) x 1 x 128"), std::string::npos) << text;
  EXPECT_NE(text.find(" 10 ..."), std::string::npos) << text;
  EXPECT_NE(text.find(" 254\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace cria::tile
