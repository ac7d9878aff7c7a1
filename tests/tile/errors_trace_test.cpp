// What the tracer refuses, and how it says so: kernel, operand, index, program and line.
#define CRIA_TARGET_TRACE 1
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "base/tensor.h"
#include "tile/target.h"

namespace cria::tile {
namespace {

struct Args {
  static constexpr const char* kernel = "test_kernel";
  Tensor<const float> x;
  Tensor<float> y;
  template <class V>
  void operands(V&& visit) {
    visit("x", x), visit("y", y);
  }
};

// A kernel from a body, for one test.
template <class Body, int Programs = 1>
struct Kernel {
  using Element = float;
  using Args = tile::Args;
  struct Shared {
    SharedTile<float, 16, 32> tile;
  };
  static constexpr Traits traits{.threads = 32};
  static Grid grid(const Args&) { return {Programs}; }
  template <class P>
  CRIA_FN static void run(P& p, const Args& a, Shared& s) {
    Body{}(p, a, s);
  }
};

class TraceErrors : public testing::Test {
 protected:
  alignas(64) float x_[8 * 128] = {};
  alignas(64) float y_[8 * 128] = {};
  Args args_{matrix_of<const float>(x_, 8, 128), matrix_of(y_, 8, 128)};

  template <int Programs = 1, class Body>
  std::string error_of(Body) {
    Trace t;
    try {
      trace<Kernel<Body, Programs>>(args_, t);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  static void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
  }
};

TEST_F(TraceErrors, LoadPastTheEnd) {
  const std::string text = error_of<3>([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.load(a.x.row(6 + p.program_id(0)), i);
  });
  expect_parts(text,
               {"kernel test_kernel", "out of bounds", "load", "operand x[0, 8, 0] (1 x 8 x 128)",
                "program (2,0,0)", "errors_trace_test.cpp:"});
}

TEST_F(TraceErrors, StorePastTheEnd) {
  const std::string text = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.store(a.y.row(7) + 64, i, p.load(a.x.data, i));
  });
  expect_parts(text, {"out of bounds", "store", "operand y[0, 8, 0]"});
}

// Whatever lies in memory before it.
TEST_F(TraceErrors, AccessBeforeTheStart) {
  const std::string of_x = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.load(a.x.data - 4, i, i < 4);
  });
  expect_parts(of_x, {"out of bounds", "operand x[0, -1, 124]"});
  const std::string of_y = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.load(static_cast<const float*>(a.y.data - 4), i, i < 4);
  });
  expect_parts(of_y, {"out of bounds", "operand y[0, -1, 124]"});
}

TEST_F(TraceErrors, AccessBetweenRows) {
  args_.x = matrix_of<const float>(x_, 8, 100, 128);
  const std::string text =
      error_of([](auto& p, const Args& a, auto&) { p.load(a.x.row(2), p.arange(shape<128>)); });
  expect_parts(text, {"out of bounds", "operand x[0, 2, 100] (1 x 8 x 100)"});
}

TEST_F(TraceErrors, AccessToNoOperand) {
  const std::string text = error_of([](auto& p, const Args&, auto&) {
    static float stray[128];
    p.load(stray, p.arange(shape<128>));
  });
  expect_parts(text, {"out of bounds"});
}

TEST_F(TraceErrors, GatherOutside) {
  const std::string text = error_of([](auto& p, const Args& a, auto&) {
    auto index = map([](float) { return int32_t{2000}; }, p.zeros(shape<128>));
    p.gather(a.x.data, index);
  });
  expect_parts(text, {"out of bounds", "operand x[0, 15, 80]"});
}

TEST_F(TraceErrors, WriteThroughConst) {
  const std::string text = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.store(const_cast<float*>(a.x.row(3)), i, p.zeros(shape<128>));
  });
  expect_parts(text, {"write to a const operand", "operand x[0, 3, 0]", "program (0,0,0)"});
}

TEST_F(TraceErrors, ScalarStoreThroughConst) {
  const std::string text = error_of(
      [](auto& p, const Args& a, auto&) { p.store(const_cast<float*>(a.x.data) + 5, 1.f); });
  expect_parts(text, {"write to a const operand", "operand x[0, 0, 5]"});
}

TEST_F(TraceErrors, MisalignedVector) {
  const std::string text = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>) + 1;
    p.load(a.x.data, i, i < 125);
  });
  expect_parts(text, {"misaligned", "16 bytes", "operand x[0, 0, 1]"});
}

// Of a vector over the edge only what is inside may be meant.
TEST_F(TraceErrors, AccessBeyondTheEdgeOfAVector) {
  args_.x = matrix_of<const float>(x_, 8, 126, 128);
  args_.y = matrix_of(y_, 8, 126, 128);
  const std::string read =
      error_of([](auto& p, const Args& a, auto&) { p.load(a.x.row(2), p.arange(shape<128>)); });
  expect_parts(read, {"out of bounds", "load of operand x[0, 2, 127]"});
  const std::string written = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.store(a.y.row(2), i, p.zeros(shape<128>), i < 127);
  });
  expect_parts(written, {"out of bounds", "store of operand y[0, 2, 126]"});
  const std::string fetched = error_of([](auto& p, const Args& a, auto& s) {
    Tensor<const float> wider = a.x;
    wider.cols = 127;
    p.fetch(s.tile[0], wider, 0, 0, 96);
  });
  expect_parts(fetched, {"out of bounds", "async copy of operand x[0, 0, 126]"});
}

// Where all widths are whole vectors, GPUs run code that looks for no edge within one.
TEST_F(TraceErrors, MaskThatCutsAVectorOfWholeWidths) {
  const std::string text = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    p.load(a.x.data, i, i < 126);
  });
  expect_parts(text, {"cuts a vector of 4", "column 126"});
}

TEST_F(TraceErrors, OverwrittenBetweenLoadAndUse) {
  const std::string text = error_of([](auto& p, const Args& a, auto&) {
    auto i = p.arange(shape<128>);
    auto old = p.load(static_cast<const float*>(a.y.data), i);
    p.store(a.y.data, i, p.full(shape<128>, 3.f));
    p.store(a.y.row(1), i, old);
  });
  expect_parts(text,
               {"operand y[0, 0, 0]", "was overwritten between its load and its use", "p.keep()"});
}

TEST_F(TraceErrors, KeepMakesItRight) {
  EXPECT_EQ(error_of([](auto& p, const Args& a, auto&) {
              auto i = p.arange(shape<128>);
              auto old = p.keep(p.load(static_cast<const float*>(a.y.data), i));
              p.store(a.y.data, i, p.full(shape<128>, 3.f));
              p.store(a.y.row(1), i, old);
            }),
            "no error");
  EXPECT_EQ(y_[5], 3.f);
  EXPECT_EQ(y_[128 + 5], 0.f);
}

TEST_F(TraceErrors, InPlaceIsAllowed) {
  args_.x = matrix_of<const float>(y_, 8, 128);  // x and y are one buffer
  for (float& v : y_) v = 1.f;
  EXPECT_EQ(error_of([](auto& p, const Args& a, auto&) {
              auto i = p.arange(shape<128>);
              p.store(a.y.data, i, p.load(a.x.data, i) * 2.f);
            }),
            "no error");
  EXPECT_EQ(y_[100], 2.f);
}

TEST_F(TraceErrors, OverwrittenBetweenFetchAndUse) {
  const std::string text = error_of([](auto& p, const Args& a, auto& s) {
    p.fetch(s.tile[0], matrix_of<const float>(a.y.data, 8, 128), 0, 0, 0);
    p.store(a.y.data, p.arange(shape<128>), p.full(shape<128>, 3.f));
    p.read(s.tile[0]);
  });
  expect_parts(text, {"operand y[0, 0, 0]", "was overwritten between its fetch and its use"});
}

TEST_F(TraceErrors, UnfilledSharedTile) {
  const std::string text = error_of([](auto& p, const Args&, auto& s) { p.read(s.tile[0]); });
  expect_parts(text, {"used before any fetch or write"});
}

}  // namespace
}  // namespace cria::tile
